// Layer 2 of lower_alloc.h: the system-call instructions of the lower half's own ld.so and libc.
//
// glibc reaches the kernel for thread stacks, dlopen, nss, locales through hidden copies of mmap and friends,
// which no symbol interposes. Each of these is one place (glibc 2.36: one per function in libc.so.6, mmap and
// munmap in ld.so; tests/unit/split notices a change). It becomes a jump to a trampoline within reach, which
// calls our function with the system call's arguments and jumps back. Only this process's lower half is
// changed; the upper half maps its own copies of the files.
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "split/address/code.h"
#include "split/address/raw.h"
#include "split/alloc/lower_alloc.h"
#include "split/alloc/shared_segments.h"

// Entered from a trampoline as if it were the syscall instruction: arguments in rdi rsi rdx r10 r8 r9, result
// in rax, every other register kept (SSE registers are free: the sites are whole C functions).
#define ENTRY(name, function)                                                                    \
    asm(".text\n.p2align 4\n.globl " name "\n.hidden " name "\n.type " name ", @function\n" name \
        ":\n"                                                                                    \
        "endbr64\n"                                                                              \
        "push %rbp\nmov %rsp, %rbp\n"                                                            \
        "push %rdi\npush %rsi\npush %rdx\npush %r8\npush %r9\npush %r10\n"                       \
        "and $-16, %rsp\n"                                                                       \
        "mov %r10, %rcx\n"                                                                       \
        "call " function                                                                         \
        "\n"                                                                                     \
        "mov -8(%rbp), %rdi\nmov -16(%rbp), %rsi\nmov -24(%rbp), %rdx\n"                         \
        "mov -32(%rbp), %r8\nmov -40(%rbp), %r9\nmov -48(%rbp), %r10\n"                          \
        "mov %rbp, %rsp\npop %rbp\nret\n.size " name ", .-" name "\n")

extern "C" {
__attribute__((visibility("hidden"), used)) long fermata_site_mmap(void* a, size_t n, int prot, int flags,
                                                                   int fd, long offset) noexcept {
    return fermata::split::lower_mmap(a, n, prot, flags, fd, offset);
}
__attribute__((visibility("hidden"), used)) long fermata_site_munmap(void* a, size_t n) noexcept {
    return fermata::split::lower_munmap(a, n);
}
__attribute__((visibility("hidden"), used)) long fermata_site_mremap(void* a, size_t old_size,
                                                                     size_t new_size, int flags,
                                                                     void* target) noexcept {
    return fermata::split::lower_mremap(a, old_size, new_size, flags, target);
}
__attribute__((visibility("hidden"), used)) long fermata_site_shmat(int id, const void* a,
                                                                    int flags) noexcept {
    return fermata::split::lower_shmat(id, a, flags);
}
__attribute__((visibility("hidden"), used)) long fermata_site_shmdt(const void* a) noexcept {
    return fermata::split::lower_shmdt(a);
}
void fermata_entry_mmap();
void fermata_entry_munmap();
void fermata_entry_mremap();
void fermata_entry_shmat();
void fermata_entry_shmdt();
}
ENTRY("fermata_entry_mmap", "fermata_site_mmap");
ENTRY("fermata_entry_munmap", "fermata_site_munmap");
ENTRY("fermata_entry_mremap", "fermata_site_mremap");
ENTRY("fermata_entry_shmat", "fermata_site_shmat");
ENTRY("fermata_entry_shmdt", "fermata_site_shmdt");

namespace fermata::split {
namespace {

struct Call {
    int number;
    void (*entry)();
    const char* name;
};
constexpr Call kCalls[] = {{SYS_mmap, fermata_entry_mmap, "mmap"},
                           {SYS_munmap, fermata_entry_munmap, "munmap"},
                           {SYS_mremap, fermata_entry_mremap, "mremap"},
                           {SYS_shmat, fermata_entry_shmat, "shmat"},
                           {SYS_shmdt, fermata_entry_shmdt, "shmdt"}};

struct Object {
    Range text;          // executable segment
    uint32_t found = 0;  // bit per entry of kCalls
    bool present = false;
};
Object libc, rtld;
std::string failure;

constexpr size_t kTrampoline = 32;
// lea -128(%rsp),%rsp; call *entry(%rip); lea 128(%rsp),%rsp; jmp back; entry: .quad
uint8_t* write_trampoline(uint8_t* at, void (*entry)(), const uint8_t* back) {
    uint8_t code[kTrampoline] = {0x48, 0x8d, 0x64, 0x24, 0x80,            //  0 skip the red zone
                                 0xff, 0x15, 0x0d, 0,    0,    0,         //  5 call *13(%rip) = 24
                                 0x48, 0x8d, 0xa4, 0x24, 0x80, 0, 0, 0,   // 11 lea 128(%rsp),%rsp
                                 0,    0,    0,    0,    0,               // 19 jmp back
                                 0,    0,    0,    0,    0,    0, 0, 0};  // 24 entry
    std::memcpy(code + 24, &entry, 8);
    std::memcpy(at, code, sizeof code);
    write_jump(at + 19, back);
    return at + sizeof code;
}

bool patch(Object& object) {
    uint8_t* page = page_near(object.text);
    if (!page) return false;
    uint8_t* free = page;
    auto* begin = reinterpret_cast<uint8_t*>(object.text.begin());
    auto* end = reinterpret_cast<uint8_t*>(object.text.end());
    if (!make_writable(object.text)) return false;
    for (uint8_t* at = begin; at + kCallSite <= end; ++at) {
        const int number = system_call_at(at);
        if (number < 0) continue;
        for (size_t k = 0; k < std::size(kCalls); ++k) {
            if (number != kCalls[k].number || free + kTrampoline > page + kPage) continue;
            uint8_t* trampoline = free;
            free = write_trampoline(trampoline, kCalls[k].entry, at + kCallSite);
            // The trampoline must be executable before anything jumps there; we are alone, but mprotect
            // itself does not pass here.
            divert_system_call(at, trampoline);
            object.found |= 1u << k;
            break;
        }
    }
    bool ok = make_executable({uint64_t(page), uint64_t(page) + kPage});
    ok &= make_executable(object.text);
    return ok;
}

int visit(dl_phdr_info* info, size_t, void*) {
    const char* slash = std::strrchr(info->dlpi_name, '/');
    const char* name = slash ? slash + 1 : info->dlpi_name;
    Object* object = nullptr;
    if (std::strcmp(name, "libc.so.6") == 0) object = &libc;
    if (info->dlpi_addr == getauxval(AT_BASE)) object = &rtld;
    if (!object) return 0;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
        const auto& p = info->dlpi_phdr[i];
        if (p.p_type != PT_LOAD || !(p.p_flags & PF_X)) continue;
        object->text = {page_down(info->dlpi_addr + p.p_vaddr), info->dlpi_addr + p.p_vaddr + p.p_memsz};
        object->present = true;
    }
    return 0;
}

// UCX reads its settings before main, when its library is loaded: this runs before any library's constructor.
// With its hooks (bistro, reloc) its registration cache hands out memory that the upper half has given back.
// In place: the environment is the kernel's still.
void silence_ucx_hooks(int, char**, char** environment) {
    static constexpr char kName[] = "UCX_MEM_MMAP_HOOK_MODE=", kNone[] = "none";
    for (; *environment; ++environment) {
        if (std::strncmp(*environment, kName, sizeof kName - 1) != 0) continue;
        char* value = *environment + sizeof kName - 1;
        if (std::strlen(value) >= sizeof kNone - 1) std::memcpy(value, kNone, sizeof kNone);
    }
}
__attribute__((section(".preinit_array"),
               used)) void (*const g_before_constructors)(int, char**, char**) = silence_ucx_hooks;

void leave_memory_functions_alone() {
    // Open MPI's memory patcher overwrites the first instructions of munmap & co. It serves registration
    // caches, which cannot see the upper half's unmapping anyway (design 3.11). `fermata run` sets
    // UCX_MEM_MMAP_HOOK_MODE=none (and UCX_WARN_UNUSED_ENV_VARS=n, for UCX 1.13 warns when it needs no
    // hooks).
    setenv("OMPI_MCA_memory", "^patcher", 0);
}

}  // namespace

void prepare_lower() {
    leave_memory_functions_alone();
    if (libc.present || !failure.empty()) return;
    dl_iterate_phdr(visit, nullptr);
    auto check = [](Object& object, const char* name, uint32_t wanted) {
        if (!object.present)
            failure = std::string("the lower half's ") + name + " was not found in the process";
        else if (!patch(object))
            failure = std::string("the lower half's ") + name + " cannot be made writable (SELinux execmod?)";
        else if ((object.found & wanted) != wanted)
            failure = std::string("the system calls in the lower half's ") + name +
                      " do not look as in the glibc versions known to Fermata";
    };
    check(rtld, "ld.so", 3);
    if (failure.empty()) check(libc, "libc.so.6", 31);
}

std::string lower_patch_report() {
    return failure.empty() ? "" : failure + ": threads and libraries started later may land in the window";
}

}  // namespace fermata::split
