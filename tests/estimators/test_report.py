from ratoon import SparseMLPClassifier


def test_the_report_has_requested_and_achieved_values(two_classes):
    model = SparseMLPClassifier((40,), epsilon=2, evolution="set", max_iter=4, random_state=0)
    report = model.fit(*two_classes).report_
    first, last = report.layers
    #  8 -> 40: 2 * 48 = 96 of 320; 40 -> 2: 2 * 42 = 84, more than the 80 there are
    assert (first.n_connections, first.requested_density, first.achieved_density) == (96, 0.3, 0.3)
    assert (last.n_connections, last.requested_density) == (80, 1.0)
    assert first.rewired > 0
    assert last.rewired == 0, "a full layer cannot rewire"
    assert first.rewired + last.rewired == sum(model.history_.column("rewired"))
    assert report.n_connections == 176
    assert report.n_epochs == 4


def test_the_report_is_a_table_in_text_and_in_a_notebook(two_classes):
    model = SparseMLPClassifier((40,), density=0.25, max_iter=2, random_state=0).fit(*two_classes)
    lines = str(model.report_).splitlines()
    assert " ".join(lines[0].split()) == "layer shape connections requested achieved MB rewired"
    assert lines[1].split()[:6] == ["1", "8", "->", "40", "80", "0.25"]
    html = model.report_._repr_html_()
    assert html.count("<tr>") == 3
    assert "8 -&gt; 40" in html


def test_rewirings_are_counted_across_continued_training(two_classes):
    X, y = two_classes
    model = SparseMLPClassifier((40,), density=0.25, evolution="set", max_iter=3, random_state=0)
    for _ in range(3):
        model.partial_fit(X, y)
    counted = [layer.rewired for layer in model.report_.layers]
    assert counted == [layer.rewired for layer in model.fit(X, y).report_.layers]
