"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const dataOf = (id) => { const block = byId(id); return block ? JSON.parse(block.textContent) : null; };
  const make = (name, css, text) => {
    const element = document.createElement(name);
    if (css) element.className = css;
    if (text !== undefined) element.textContent = text;
    return element;
  };
  const SVG = "http://www.w3.org/2000/svg";
  const drawn = (name, attributes) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  document.body.classList.add("scripted");

  // ---------------------------------------------------------------- details under the pointer
  const tip = byId("tip");
  const show = (text, event) => {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
    const below = event.clientY + 18 + box.height < window.innerHeight;
    tip.style.left = Math.max(left, 4) + "px";
    tip.style.top = (below ? event.clientY + 18 : event.clientY - box.height - 10) + "px";
  };
  const hide = () => { tip.hidden = true; };
  for (const title of document.querySelectorAll("svg.chart title")) {
    title.parentNode.setAttribute("data-tip", title.textContent);
    title.remove();  // or the browser would show it a second time
  }
  document.addEventListener("pointermove", (event) => {
    const target = event.target instanceof Element && event.target.closest("[data-tip]");
    if (target) show(target.getAttribute("data-tip"), event);
    else if (!(event.target instanceof Element && event.target.closest(".heat"))) hide();
  });
  document.addEventListener("pointerleave", hide);

  // ------------------------------------------------------------------------ the table of samples
  const table = byId("table");
  const given = dataOf("samples-data");
  let only = () => {};
  if (table && given) {
    const ON_SCREEN = 50, ON_PAPER = 500;
    let perPage = ON_SCREEN;
    const body = table.querySelector("tbody");
    const heads = [...table.querySelectorAll("thead th")];
    const find = byId("find"), wrong = byId("only-wrong");
    const isTrue = byId("only-true"), isPredicted = byId("only-predicted");
    const isClass = given.columns.map((column) => column.kind === "class");
    const order = new Intl.Collator(undefined, { numeric: true });
    let sorted = null, down = false, page = 0;
    const value = (row, column) => isClass[column] ? given.classes[row[column + 1]] : row[column + 1];
    const isWrong = (row) => given.classes.length > 0 && row[2] !== row[3];
    const wanted = (row) => {
      const text = find.value.trim().toLowerCase();
      if (text && !String(row[1]).toLowerCase().includes(text)) return false;
      if (!isTrue) return true;
      if (isTrue.value !== "" && row[2] !== Number(isTrue.value)) return false;
      if (isPredicted.value !== "" && row[3] !== Number(isPredicted.value)) return false;
      return !wrong.checked || isWrong(row);
    };
    const rows = () => {
      const chosen = given.rows.filter(wanted);
      if (sorted !== null) {
        chosen.sort((a, b) => {
          const x = value(a, sorted), y = value(b, sorted);
          const found = typeof x === "number" ? x - y : order.compare(x, y);
          return down ? -found : found;
        });
      }
      return chosen;
    };
    const cell = (row, column) => {
      const { kind } = given.columns[column], raw = row[column + 1];
      const made = make("td", kind);
      if (kind === "class") {
        made.append(make("i", "dotmark c" + (raw % 10)), given.classes[raw]);
      } else if (kind === "share") {
        const bar = drawn("svg", { class: "share", viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" });
        bar.append(drawn("rect", { width: (100 * raw).toFixed(1), height: 6 }));
        made.append((100 * raw).toFixed(1) + " %", bar);
      } else {
        made.textContent = kind === "signed" ? raw.toFixed(3) : kind === "number" ? String(Number(raw.toPrecision(4))) : String(raw);
      }
      return made;
    };
    const draw = () => {
      const chosen = rows();
      const last = Math.max(0, Math.ceil(chosen.length / perPage) - 1);
      page = Math.min(Math.max(page, 0), last);
      const lines = chosen.slice(page * perPage, (page + 1) * perPage).map((row) => {
        const line = make("tr", isWrong(row) ? "wrong" : "");
        line.setAttribute("data-s", row[0]);
        line.append(...given.columns.map((_, column) => cell(row, column)));
        return line;
      });
      body.replaceChildren(...lines);
      byId("shown").textContent = chosen.length + " of " + given.rows.length + " samples";
      table.querySelector(".pages").hidden = last === 0;
      byId("page").textContent = "page " + (page + 1) + " of " + (last + 1);
      byId("earlier").disabled = page === 0;
      byId("later").disabled = page === last;
    };
    heads.forEach((head, column) => {
      const button = make("button", "", head.textContent);
      button.type = "button";
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        down = sorted === column && !down;
        sorted = column;
        page = 0;
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        draw();
      });
    });
    const again = () => { page = 0; draw(); };
    for (const control of [find, wrong, isTrue, isPredicted]) if (control) control.addEventListener("input", again);
    byId("earlier").addEventListener("click", () => { page -= 1; draw(); });
    byId("later").addEventListener("click", () => { page += 1; draw(); });
    table.querySelector(".controls").hidden = false;
    only = (trueClass, predicted) => {
      isTrue.value = String(trueClass);
      isPredicted.value = String(predicted);
      wrong.checked = false;
      find.value = "";
      again();
      byId("samples").scrollIntoView();
    };
    draw();
    window.addEventListener("beforeprint", () => { perPage = ON_PAPER; draw(); });
    window.addEventListener("afterprint", () => { perPage = ON_SCREEN; draw(); });
    // A sample under the pointer is marked in all charts.
    const light = (event, on) => {
      const line = event.target instanceof Element && event.target.closest("tr[data-s]");
      if (!line) return;
      for (const dot of document.querySelectorAll('circle[data-s="' + Number(line.dataset.s) + '"]')) dot.classList.toggle("lit", on);
    };
    body.addEventListener("pointerover", (event) => light(event, true));
    body.addEventListener("pointerout", (event) => light(event, false));
    for (const box of document.querySelectorAll(".matrix td[data-row]")) {
      box.addEventListener("click", () => only(box.dataset.column, box.dataset.row));
    }
  }

  // ------------------------------------------------------------------------- other sortable tables
  for (const other of document.querySelectorAll("table.sortable")) {
    const body = other.querySelector("tbody"), heads = [...other.querySelectorAll("thead th")];
    const order = new Intl.Collator(undefined, { numeric: true });
    const read = (line, column) => {
      const text = line.children[column].firstChild ? line.children[column].firstChild.textContent.trim() : "";
      const found = parseFloat(text.replace(/^[<~]\s*/, "").replace(/,/g, ""));
      return Number.isNaN(found) ? text : found;
    };
    const compare = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : order.compare(String(a), String(b));
    heads.forEach((head, column) => {
      const button = make("button", "", head.textContent);
      button.type = "button";
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((one) => one.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const lines = [...body.children].sort((a, b) => compare(read(a, column), read(b, column)) * (down ? -1 : 1));
        body.replaceChildren(...lines);
      });
    });
  }

  // ------------------------------------------------------------------------------------ legends
  for (const swatch of document.querySelectorAll(".swatch")) {
    swatch.addEventListener("click", () => {
      const on = swatch.getAttribute("aria-pressed") !== "true";
      swatch.setAttribute("aria-pressed", String(on));
      const part = swatch.closest("section");
      for (const element of part.querySelectorAll("svg.chart ." + swatch.dataset.hide)) element.style.display = on ? "" : "none";
    });
  }

  // ------------------------------------------------------------------- zoom: drag, double-click
  for (const chart of document.querySelectorAll("svg.zoom")) {
    const whole = chart.getAttribute("viewBox");
    let start = null, band = null, before = -1000;
    const place = (event) => {
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(chart.getScreenCTM().inverse());
      return [point.x, point.y];
    };
    const [, , wide, high] = whole.split(" ").map(Number);
    const box = (event) => {
      const [x, y] = place(event);
      return [Math.min(x, start[0]), Math.min(y, start[1]), Math.abs(x - start[0]), Math.abs(y - start[1])];
    };
    const shaped = ([x, y, width, height]) => {  // as wide for its height as the whole chart
      const factor = Math.max(width / wide, height / high);
      return [x + (width - factor * wide) / 2, y + (height - factor * high) / 2, factor * wide, factor * high];
    };
    chart.addEventListener("pointerdown", (event) => {
      if (event.button !== 0 || event.pointerType === "touch") return;
      start = place(event);
      band = drawn("rect", { class: "band", width: 0, height: 0 });
      chart.append(band);
    });
    chart.addEventListener("mousedown", (event) => event.preventDefault());  // no selection of text
    chart.addEventListener("pointermove", (event) => {
      if (!start) return;
      const [x, y, width, height] = box(event);
      for (const [key, value] of Object.entries({ x, y, width, height })) band.setAttribute(key, value);
    });
    window.addEventListener("pointerup", (event) => {
      if (!start) return;
      const found = box(event);
      band.remove();
      start = null;
      // The band is added and removed between the clicks, so that browsers see no double-click.
      if (found[2] < 2 && found[3] < 2) {
        if (event.timeStamp - before < 500) chart.setAttribute("viewBox", whole);
        before = event.timeStamp;
      }
      if (found[2] > 8 && found[3] > 8) chart.setAttribute("viewBox", shaped(found).map((one) => one.toFixed(1)).join(" "));
    });
  }

  // ------------------------------------------------------------------------------- the heat map
  const heat = document.querySelector("svg.heat"), values = dataOf("heat-data");
  if (heat && values) {
    const image = heat.querySelector("image"), cross = heat.querySelector(".cross");
    const [left, top, width, height] = ["x", "y", "width", "height"].map((name) => Number(image.getAttribute(name)));
    const nRows = values.features.length, nColumns = values.samples.length;
    heat.addEventListener("pointermove", (event) => {
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(heat.getScreenCTM().inverse());
      const row = Math.floor((point.y - top) / height * nRows), column = Math.floor((point.x - left) / width * nColumns);
      const inside = column >= 0 && column < nColumns && row < nRows && point.y >= top - 16;
      const attributes = { x: left + column * width / nColumns, y: row < 0 ? top - 15 : top + row * height / nRows, width: width / nColumns, height: row < 0 ? 11 : height / nRows };
      if (!inside) { cross.setAttribute("width", 0); hide(); return; }
      for (const [key, value] of Object.entries(attributes)) cross.setAttribute(key, value);
      const sample = values.samples[column] + (values.classes.length ? " (" + values.classes[column] + ")" : "");
      const text = row < 0 ? sample : values.features[row] + ", " + sample + ": " + (values.z[row][column] / 100).toFixed(2) + " standard deviations";
      show(text, event);
    });
    heat.addEventListener("pointerleave", () => { cross.setAttribute("width", 0); hide(); });
  }

  // -------------------------------------------------------------------------- folded parts
  const open = () => {
    const target = location.hash.length > 1 && byId(location.hash.slice(1));
    if (target && target.tagName === "DETAILS") target.open = true;
  };
  window.addEventListener("hashchange", open);
  for (const link of document.querySelectorAll("nav a")) {
    link.addEventListener("click", () => {
      const target = byId(link.getAttribute("href").slice(1));
      if (target && target.tagName === "DETAILS") target.open = true;
    });
  }
  open();
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const part of closed) part.open = true;
  });
  window.addEventListener("afterprint", () => { for (const part of closed) part.open = false; });
})();
