// A broken invariant is a fault of Fermata's own: a value that cannot be. It is looked for in release builds
// too, since going on with such a value would be a wrong result.
#pragma once

namespace fermata {

// Ends what is being done: by an Error that says `what`; in the front, which has no exceptions, by the end of
// the job. Each of the two has its own definition (base/error.cpp, front/core/invariant.cpp).
[[noreturn, gnu::cold]] void invariant_broken(const char* what);

// constexpr: a constant that breaks an invariant does not compile.
constexpr void always(bool holds, const char* what) {
    if (__builtin_expect(!holds, 0)) invariant_broken(what);
}

}  // namespace fermata
