// Every kernel, declared once per instruction set.

#pragma once

namespace ratoon {

namespace baseline {
const char* version();
}

namespace avx2 {
const char* version();
}

namespace avx512 {
const char* version();
}

}  // namespace ratoon
