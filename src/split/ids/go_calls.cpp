#include "split/ids/go_calls.h"

#include <elf.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

#include "split/address/code.h"
#include "split/address/maps.h"
#include "split/address/raw.h"
#include "split/address/window.h"
#include "split/threads/records.h"

namespace fermata::split::ids {
namespace {

// One function of package syscall, in assembly. A jump takes the place of its first instructions.
struct Form {
    const uint8_t* code;
    size_t size;
    size_t moves;        // bytes in front of the system call
    size_t second_move;  // where the second instruction begins
    size_t tail;         // bytes behind the system call that are done before the jump back
};

// internal/runtime/syscall.Syscall6 (seen in Go 1.22, 1.24 and 1.26). The comparison's flags are looked at
// behind it.
constexpr uint8_t kSyscall6[] = {0x49, 0x89, 0xf2,                     // mov %rsi,%r10
                                 0x48, 0x89, 0xfa,                     // mov %rdi,%rdx
                                 0x48, 0x89, 0xce,                     // mov %rcx,%rsi
                                 0x48, 0x89, 0xdf,                     // mov %rbx,%rdi
                                 0x0f, 0x05,                           // syscall
                                 0x48, 0x3d, 0x01, 0xf0, 0xff, 0xff};  // cmp $-4095,%rax
// syscall.rawSyscallNoError: getpid and the like.
constexpr uint8_t kNoError[] = {0x48, 0x8b, 0x7c, 0x24, 0x10,   // mov 16(%rsp),%rdi
                                0x48, 0x8b, 0x74, 0x24, 0x18,   // mov 24(%rsp),%rsi
                                0x48, 0x8b, 0x54, 0x24, 0x20,   // mov 32(%rsp),%rdx
                                0x48, 0x8b, 0x44, 0x24, 0x08,   // mov 8(%rsp),%rax
                                0x0f, 0x05,                     // syscall
                                0x48, 0x89, 0x44, 0x24, 0x28};  // mov %rax,40(%rsp)
constexpr Form kForms[] = {{kSyscall6, sizeof kSyscall6, 12, 3, 6}, {kNoError, sizeof kNoError, 20, 5, 0}};
constexpr size_t kInstruction = 2;  // bytes of `syscall`

// The run time's own, each a function in assembly with `mov $NN,%eax; syscall` (address/code.h).
constexpr int kNumbers[] = {SYS_getpid, SYS_gettid, SYS_tgkill, SYS_kill};

// Where calls are led from a trampoline: as the instruction, but rax all registers stay (rcx and r11 are
// free).
//     lea -128(%rsp),%rsp; push …; call *to(%rip); pop …; lea 128(%rsp),%rsp; [cmp]; jmp back; to: .quad
constexpr uint8_t kCall[] = {0x48, 0x8d, 0x64, 0x24,
                             0x80,              // lea -128(%rsp),%rsp: skip what a function may keep below
                             0x55,              // push %rbp
                             0x48, 0x89, 0xe5,  // mov %rsp,%rbp
                             0x57, 0x56, 0x52,  // push %rdi, %rsi, %rdx
                             0x41, 0x50,        // push %r8
                             0x41, 0x51,        // push %r9
                             0x41, 0x52,        // push %r10
                             0x48, 0x83, 0xe4, 0xf0,    // and $-16,%rsp
                             0x48, 0x83, 0xec, 0x08,    // sub $8,%rsp
                             0x41, 0x51,                // push %r9: the seventh argument
                             0x4d, 0x89, 0xc1,          // mov %r8,%r9
                             0x4d, 0x89, 0xd0,          // mov %r10,%r8
                             0x48, 0x89, 0xd1,          // mov %rdx,%rcx
                             0x48, 0x89, 0xf2,          // mov %rsi,%rdx
                             0x48, 0x89, 0xfe,          // mov %rdi,%rsi
                             0x48, 0x63, 0xf8,          // movslq %eax,%rdi
                             0xff, 0x15};               // call *…(%rip)
constexpr uint8_t kReturn[] = {0x48, 0x8b, 0x7d, 0xf8,  // mov -8(%rbp),%rdi
                               0x48, 0x8b, 0x75, 0xf0,  // mov -16(%rbp),%rsi
                               0x48, 0x8b, 0x55, 0xe8,  // mov -24(%rbp),%rdx
                               0x4c, 0x8b, 0x45, 0xe0,  // mov -32(%rbp),%r8
                               0x4c, 0x8b, 0x4d, 0xd8,  // mov -40(%rbp),%r9
                               0x4c, 0x8b, 0x55, 0xd0,  // mov -48(%rbp),%r10
                               0x48, 0x89, 0xec,        // mov %rbp,%rsp
                               0x5d,                    // pop %rbp
                               0x48, 0x8d, 0xa4, 0x24, 0x80, 0x00, 0x00, 0x00};  // lea 128(%rsp),%rsp
constexpr size_t kTrampoline = 128;
constexpr size_t kAddress = 120;  // of the function's, in a trampoline

struct Site {
    uint8_t* at;
    const Form* form;  // null: `mov $NN,%eax; syscall`
};

// A thread that stands where the middle of the jump is now goes on in the trampoline, which begins the same
// way.
void move_threads(uint64_t from, uint64_t to) {
    for (uint32_t i = 0; i < threads::table()->high_water; ++i) {
        const ThreadRecord& record = threads::table()->record[i];
        if (record.run != Run::stopped) continue;
        greg_t& instruction = static_cast<ucontext_t*>(record.context)->uc_mcontext.gregs[REG_RIP];
        if (instruction == static_cast<greg_t>(from)) instruction = static_cast<greg_t>(to);
    }
}

// `syscall` itself stays for threads that stand in it or have come back from it.
void divert(const Site& site, uint8_t* trampoline, RawCall to) {
    uint8_t* next = trampoline;
    auto add = [&next](const uint8_t* code, size_t size) {
        std::memcpy(next, code, size);
        next += size;
    };
    const size_t moves = site.form ? site.form->moves : kJump, tail = site.form ? site.form->tail : 0;
    add(site.at, moves);
    add(kCall, sizeof kCall);
    const auto displacement = static_cast<int32_t>(trampoline + kAddress - (next + 4));
    add(reinterpret_cast<const uint8_t*>(&displacement), sizeof displacement);
    add(kReturn, sizeof kReturn);
    add(site.at + moves + kInstruction, tail);
    write_jump(next, site.at + moves + kInstruction + tail);
    std::memcpy(trampoline + kAddress, &to, sizeof to);
    write_jump(site.at, trampoline);
    if (site.form && site.form->second_move < kJump)
        move_threads(uint64_t(site.at) + site.form->second_move,
                     uint64_t(trampoline) + site.form->second_move);
}

// Are these notes of an executable that Go's linker has made (cmd/link/internal/ld/elf.go)?
bool go_notes(const uint8_t* notes, uint64_t size) {
    constexpr uint32_t kGoBuildId = 4;
    auto padded = [](uint64_t bytes) { return (bytes + 3) & ~uint64_t{3}; };
    Elf64_Nhdr header;
    for (uint64_t at = 0; at + sizeof header + 4 <= size;) {
        std::memcpy(&header, notes + at, sizeof header);
        at += sizeof header;
        if (header.n_namesz == 4 && header.n_type == kGoBuildId && std::memcmp(notes + at, "Go\0", 4) == 0)
            return true;
        at += padded(header.n_namesz) + padded(header.n_descsz);
    }
    return false;
}

// Code of the object whose headers stand at the beginning of `mapping`, if it is one of Go's.
std::vector<Range> code_of(const Mapping& mapping) {
    std::vector<Range> code;
    const auto* base = reinterpret_cast<const uint8_t*>(mapping.range.begin());
    Elf64_Ehdr header;
    // A mapping may begin with guard pages (MADV_GUARD_INSTALL): the stack of a thread does.
    const iovec to{&header, sizeof header}, from{const_cast<uint8_t*>(base), sizeof header};
    if (::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) != ssize_t{sizeof header}) return code;
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_phentsize != sizeof(Elf64_Phdr) ||
        header.e_phoff + header.e_phnum * sizeof(Elf64_Phdr) > mapping.range.size())
        return code;
    std::vector<Elf64_Phdr> parts(header.e_phnum);
    std::memcpy(parts.data(), base + header.e_phoff, parts.size() * sizeof(Elf64_Phdr));
    const auto first =
        std::find_if(parts.begin(), parts.end(), [](auto& part) { return part.p_type == PT_LOAD; });
    if (first == parts.end()) return code;
    const uint64_t bias = mapping.range.begin() - page_down(first->p_vaddr);
    bool is_go = false;
    for (const Elf64_Phdr& part : parts) {
        const uint64_t at = bias + part.p_vaddr;
        if (part.p_type == PT_NOTE && mapping.range.contains(at) && part.p_filesz <= mapping.range.end() - at)
            is_go |= go_notes(reinterpret_cast<const uint8_t*>(at), part.p_filesz);
        if (part.p_type == PT_LOAD && (part.p_flags & PF_X) != 0) code.push_back({at, at + part.p_filesz});
    }
    return is_go ? code : std::vector<Range>{};
}

bool is_mapped(const std::vector<Mapping>& maps, Range code) {
    uint64_t at = page_down(code.begin());
    for (const Mapping& one : maps)
        if (one.range.contains(at) && (one.prot & PROT_EXEC) != 0) at = one.range.end();
    return at >= code.end();
}

std::vector<Site> sites_in(Range code) {
    std::vector<Site> sites;
    auto* begin = reinterpret_cast<uint8_t*>(code.begin());
    auto* end = reinterpret_cast<uint8_t*>(code.end());
    for (uint8_t* at = begin; at + kCallSite <= end; ++at) {
        if (int number = system_call_at(at); number >= 0) {
            if (std::find(std::begin(kNumbers), std::end(kNumbers), number) != std::end(kNumbers))
                sites.push_back({at, nullptr});
            continue;
        }
        for (const Form& form : kForms)
            if (at + form.size <= end && std::memcmp(at, form.code, form.size) == 0)
                sites.push_back({at, &form});
    }
    return sites;
}

// Has an earlier restart led calls of this code? The system calls stay behind the jumps.
bool is_led(Range code) {
    const auto* begin = reinterpret_cast<const uint8_t*>(code.begin());
    const auto* end = reinterpret_cast<const uint8_t*>(code.end());
    for (const uint8_t* at = begin; at + kCallSite <= end; ++at)
        if (at[0] == 0xe9 && at[kJump] == 0x0f && at[kJump + 1] == 0x05) return true;
    return false;
}

// A page between mappings, which jumps reach from `code`. Go reserves gigabytes for itself where the kernel
// puts them, which is beside a program that is position independent: there are few. Null when there is none.
uint8_t* page_between(const std::vector<Mapping>& maps, Range code) {
    constexpr uint64_t kReach = 1ull << 30, kFar = 1ull << 28;
    for (size_t i = 0; i + 1 < maps.size(); ++i) {
        const uint64_t begin = maps[i].range.end(), end = maps[i + 1].range.begin();
        if (begin >= end) continue;
        // Away from both: a heap may grow behind what is before, a stack in front of what is behind.
        const uint64_t away = std::min((end - begin) / 2, kFar);
        for (uint64_t at : {page_down(begin + away), page_down(end - away - 1)}) {
            const Range page = Range::sized(at, kPage);
            if (!upper_range(page) || page.hull(code).size() > kReach) continue;
            long rc = raw_mmap(at, kPage, PROT_READ | PROT_WRITE | PROT_EXEC,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE);
            if (rc == long(at)) return reinterpret_cast<uint8_t*>(rc);
            if (!failed(rc)) raw_munmap(uint64_t(rc), kPage);
        }
    }
    return nullptr;
}

bool lead(const std::vector<Mapping>& maps, Range code, RawCall to) {
    const std::vector<Site> sites = sites_in(code);
    if (sites.empty()) return is_led(code);  // not: of a version whose calls look otherwise
    if (!make_writable(code)) return false;
    // Trampolines stand in what the last page of the code has left, then in a page of their own.
    auto* free = reinterpret_cast<uint8_t*>((code.end() + 15) & ~uint64_t{15});
    auto* end = reinterpret_cast<uint8_t*>(page_up(code.end()));
    uint8_t* page = nullptr;
    for (const Site& site : sites) {
        if (free + kTrampoline > end) {
            if (page == nullptr) page = page_between(maps, code);
            if (page == nullptr || free == page + kPage) break;
            free = page;
            end = page + kPage;
        }
        divert(site, free, to);
        free += kTrampoline;
    }
    bool good = make_executable(code);
    if (page != nullptr) good &= make_executable({uint64_t(page), uint64_t(page) + kPage});
    return good && sites_in(code).empty();
}

}  // namespace

std::string lead_go_calls(RawCall to) {
    const std::vector<Mapping> maps = read_maps();
    for (const Mapping& one : maps) {
        if (!upper_address(one.range.begin()) || (one.prot & PROT_READ) == 0 || one.shared ||
            one.range.size() < kPage)
            continue;
        for (Range code : code_of(one))
            if (is_mapped(maps, code) && !lead(maps, code, to))
                return fmt::format(
                    "the code of a program in Go at {:#x} cannot be changed: its run time calls "
                    "threads by the numbers they had before the restart, and may wait for ever",
                    code.begin());
    }
    return {};
}

}  // namespace fermata::split::ids
