// An ELF object of this process as the dynamic loader mapped it.
#pragma once

#include <link.h>

#include <string>
#include <vector>

#include "base/page.h"
#include "base/range.h"

namespace fermata::split::thread_pointer {

struct MappedObject {
    std::string name;            // path; "" = the program itself
    uint64_t base = 0;           // what is added to the addresses in the file
    std::vector<Range> code;     // executable segments, or the sections of them that are code
    std::string build_id;        // as hex; "" = none
    uint64_t unwind_header = 0;  // address of .eh_frame_hdr, 0 = none
    // May have offsets of thread-locals in registers (the models initial-exec, local-exec and TLSDESC of "ELF
    // Handling For Thread-Local Storage"). Other code knows only the fixed words of the thread control block:
    // __tls_get_addr gives it addresses.
    bool offsets_in_registers = false;

    // Made from what dl_iterate_phdr reports.
    explicit MappedObject(const dl_phdr_info& info);

    // The range from the first byte of code to the last; empty if there is none.
    Range extent() const;
};

}  // namespace fermata::split::thread_pointer
