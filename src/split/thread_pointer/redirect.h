// The lower half's code reaches its thread control block through GS, so that FS may stay the upper half's
// while an upper thread runs there.
//
// Code made for x86-64 finds thread-locals through FS. Writing the FS base costs some 5 ns here (Xeon, model
// 167), twice a crossing, three quarters of what a crossing costs. Nothing uses GS in user space, so every FS
// prefix in the lower half's copies of its libraries is changed into a GS prefix, one byte each; GS holds the
// thread pointer of the lower half in every thread, at all times. Objects loaded later are changed before any
// of their code runs.
//
// All or nothing: if one instruction is in doubt (see find_accesses), FS is written at each crossing, and
// code with either prefix is right.
#pragma once

#include <string>

namespace fermata::split::thread_pointer {

// Call early in main, in the only thread. Results about libraries are kept in `directory` (code_book.h); "":
// nowhere. FERMATA_THREAD_POINTER in the environment: `switch` leaves all code as it is; `poison` (tests)
// gives upper threads an FS in the lower half that faults when it is used.
void redirect(const std::string& directory = "");

// The result of redirect(): "" when crossings leave FS alone, else why they do not.
const std::string& why_switched();

}  // namespace fermata::split::thread_pointer
