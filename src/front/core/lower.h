// Calling the lower half: LOWER(Send)(buf, count, type, dest, tag, comm).
//
// Arguments are evaluated before the crossing, in the upper half; the call itself is one function pointer.
// The agent's record says `lower`, so the same line runs there without switching.
#pragma once

#include "fermata_table.h"
#include "front/core/front.h"
#include "split/gate.h"

namespace fermata::front {

template <typename R, typename... A>
struct LowerFunction {
    R (*function)(A...);
    split::ThreadRecord* record;
    __attribute__((always_inline)) R operator()(A... args) const {
        split::Crossing crossing(record);
        return function(args...);
    }
};
template <typename R, typename... A>
__attribute__((always_inline)) inline LowerFunction<R, A...> lower_function(R (*function)(A...)) {
    return {function, split::this_thread()};
}

}  // namespace fermata::front

#define LOWER(X) (::fermata::front::lower_function(::fermata::front::front.table->X))
