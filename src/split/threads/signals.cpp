#include "split/threads/signals.h"

#include "split/threads/raw.h"
#include "split/threads/records.h"

namespace fermata::split::threads {

uint64_t block_signals_for_init() { return raw::set_signal_mask(raw::kAllSignals); }

void unblock_for_upper(uint64_t mask, uint64_t later) {
    raw::set_signal_mask((mask | later) & ~raw::signal_bit(kStopSignal));
}

}  // namespace fermata::split::threads
