// The upper half's own vDSO: a small ELF image (vdso/image.S) in upper memory whose functions jump through a
// table on its last page. The table holds addresses of *this* process's kernel vDSO and is refilled at
// restart, so clock reads stay as fast as native and survive another kernel.
//
// A thread stopped while its instruction pointer is inside the kernel's vDSO must not be captured: that code
// will be elsewhere after a restart. The stop handler takes it for code of the lower half, and the agent asks
// again (the stay there is < 1 us).
#pragma once

#include <cstdint>

#include "base/page.h"
#include "split/vdso/table.h"

namespace fermata::split {

// Maps the image in the window and fills its table. Returns the address for AT_SYSINFO_EHDR. At most once per
// process; throws fermata::Error.
uint64_t map_vdso();
// After a restart: fills the table of the image that came with the checkpoint (at `image`, see
// MemoryTable::vdso).
void refill_vdso(uint64_t image);
// Address of the image mapped or refilled in this process, 0 when none.
uint64_t vdso_image();
FermataVdsoDoors vdso_doors();

}  // namespace fermata::split
