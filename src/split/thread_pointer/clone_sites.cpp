// The places in glibc where the system calls clone and clone3 are made become a jump to a copy of the call
// that looks after the child's GS base. (clone as fork() makes it has no CLONE_SETTLS: the child keeps both
// bases.)
#include "split/thread_pointer/clone_sites.h"

#include <sys/syscall.h>

#include <cstring>

#include "split/address/code.h"
#include "split/address/raw.h"
#include "split/thread_pointer/mapped_object.h"

// Copied to within reach of libc, each with a jump back behind it. clone has its flags in a register that the
// system call keeps; those of clone3 lie in its parent's memory, which the parent may use otherwise as soon
// as the call is made: they are read before, into a register of the caller's.
asm(R"(
.pushsection .rodata
.globl fermata_clone_call, fermata_clone_call_end, fermata_clone3_call, fermata_clone3_call_end
.hidden fermata_clone_call, fermata_clone_call_end, fermata_clone3_call, fermata_clone3_call_end
fermata_clone_call:
    mov $56, %eax
    syscall
    test %rax, %rax
    jnz 1f
    test $0x80000, %edi
    jz 1f
    rdfsbase %r11
    wrgsbase %r11
1:
fermata_clone_call_end:
fermata_clone3_call:
    mov (%rdi), %r9d
    mov $435, %eax
    syscall
    test %rax, %rax
    jnz 1f
    test $0x80000, %r9d
    jz 1f
    rdfsbase %r11
    wrgsbase %r11
1:
fermata_clone3_call_end:
.popsection
)");

extern "C" {
extern const uint8_t fermata_clone_call[], fermata_clone_call_end[];
extern const uint8_t fermata_clone3_call[], fermata_clone3_call_end[];
}

namespace fermata::split::thread_pointer {
namespace {

struct Call {
    int number;
    const uint8_t *begin, *end;
    int found = 0;
};

// Where the next one may begin; null when the page is full.
uint8_t* divert(uint8_t* site, const Call& call, uint8_t* free, const uint8_t* page_end) {
    auto size = static_cast<size_t>(call.end - call.begin);
    if (free + size + kJump > page_end) return nullptr;
    std::memcpy(free, call.begin, size);
    write_jump(free + size, site + kCallSite);
    divert_system_call(site, free);
    return free + size + kJump;
}

std::string change(Range text) {
    Call calls[] = {{SYS_clone, fermata_clone_call, fermata_clone_call_end},
                    {435, fermata_clone3_call, fermata_clone3_call_end}};
    uint8_t* page = page_near(text);
    if (page == nullptr) return "no room near the lower half's libc.so.6";
    if (!make_writable(text)) return "the lower half's libc.so.6 cannot be made writable (SELinux execmod?)";
    uint8_t* free = page;
    for (auto* at = reinterpret_cast<uint8_t*>(text.begin());
         at + kCallSite <= reinterpret_cast<uint8_t*>(text.end()); ++at) {
        const int number = system_call_at(at);
        if (number < 0) continue;
        for (Call& call : calls)
            if (free != nullptr && number == call.number) {
                free = divert(at, call, free, page + kPage);
                ++call.found;
            }
    }
    if (!make_executable({uint64_t(page), uint64_t(page) + kPage}) || !make_executable(text))
        return "the lower half's libc.so.6 cannot be made executable again";
    for (const Call& call : calls)
        if (call.found == 0 || free == nullptr)
            return "thread creation in the lower half's libc.so.6 does not look as in the glibc versions "
                   "known to Fermata";
    return {};
}

int find_libc(dl_phdr_info* info, size_t, void* result) {
    const char* slash = std::strrchr(info->dlpi_name, '/');
    if (std::strcmp(slash != nullptr ? slash + 1 : info->dlpi_name, "libc.so.6") != 0) return 0;
    MappedObject libc(*info);
    *static_cast<Range*>(result) = libc.extent();
    return 1;
}

}  // namespace

std::string follow_new_threads() {
    Range text;
    dl_iterate_phdr(find_libc, &text);
    return text.empty() ? "the lower half's libc.so.6 was not found in the process" : change(text);
}

}  // namespace fermata::split::thread_pointer
