// ld.so is run as a program of its own: it is mapped in the window, and everything it maps from then on lands
// there by the kernel's own choice. So copy relocations, IFUNC, TLS, DT_RPATH, versions, LD_PRELOAD all work
// as usual.
#include "split/loader/loader.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/rseq.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/error.h"
#include "base/fd.h"
#include "files/place.h"
#include "split/address/raw.h"
#include "split/loader/elf_file.h"
#include "split/loader/first_stack.h"
#include "split/loader/place_elf.h"
#include "split/loader/static_tls.h"
#include "split/partition/partition.h"
#include "split/vdso/vdso.h"

// glibc >= 2.35; weak, so that an older one means "none registered".
extern "C" {
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));
}
extern char** environ;

namespace fermata::split {
namespace {

constexpr uint64_t kUnlimitedStack = 16ull
                                     << 30;  // for `ulimit -s unlimited`: only touched pages cost memory
constexpr uint64_t kLeastStack = 1ull << 20;
constexpr uint64_t kFirstStack = 8ull << 20;            // mapped from the beginning: arguments go there
constexpr uint64_t kStackRoom = 64ull << 30;            // at the bottom of the window
constexpr uint64_t kGuard = 1ull << 20;                 // like the kernel's stack_guard_gap
constexpr const char* kWhich = "/libfermata-which.so";  // src/front/which
constexpr unsigned kRseqSignature = 0x53053053;

// As the kernel's own: it grows when it is touched below, as far as RLIMIT_STACK allows at that moment. Where
// nothing else comes to lie: the kernel's search takes the window from its top.
Range map_growing_stack() {
    uint16_t random = 0;
    if (getrandom(&random, sizeof random, 0) != ssize_t(sizeof random)) fail_errno("cannot get random bytes");
    const uint64_t size =
        std::clamp(page_up(std::min(application_stack_limit(), kFirstStack)), kLeastStack, kFirstStack);
    const uint64_t end = kWindow.begin() + kStackRoom - random * kPage;
    long rc = raw_mmap(
        end - size, size, PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK | MAP_GROWSDOWN | MAP_FIXED_NOREPLACE);
    if (failed(rc)) return {};
    sys(SYS_madvise, end - size, size, MADV_NOHUGEPAGE);  // as the kernel's stacks
    return {end - size, end};
}

Range map_stack(Range area) {
    if (area.empty())
        if (Range growing = map_growing_stack(); !growing.empty()) return growing;
    uint64_t size = application_stack_limit();
    size = size > kUnlimitedStack ? kUnlimitedStack : std::max(page_up(size), kLeastStack);
    for (;; size /= 2) {
        size = page_up(size);
        uint64_t base = reserve(size + kGuard, area, kPage, "the stack");
        const Range stack = Range::sized(base + kGuard, size);
        // Not by mprotect: MAP_NORESERVE of the mapping itself decides about accounting.
        long rc = raw_mmap(stack.begin(), size, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK | MAP_FIXED);
        if (!failed(rc)) {
            sys(SYS_madvise, stack.begin(), size, MADV_NOHUGEPAGE);  // as the kernel's stacks
            return stack;
        }
        raw_munmap(base, size + kGuard);
        if (size <= kLeastStack)
            fail("cannot map a stack of {} KiB: {}", size >> 10, std::strerror(int(-rc)));
    }
}

std::vector<uint64_t> auxv_for(const ProgramSpec& spec, const StartedProgram& program,
                               const LoadedElf& loader, StackBuilder& stack) {
    unsigned char random[16];
    if (getrandom(random, sizeof random, 0) != ssize_t(sizeof random)) fail_errno("cannot get random bytes");
    std::vector<uint64_t> words;
    auto add = [&](uint64_t key, uint64_t value) {
        words.push_back(key);
        words.push_back(value);
    };
    for (auto [key, value] : own_auxv()) {
        switch (key) {
            case AT_SYSINFO_EHDR:
                value = program.vdso;
                break;
            // As for `ld.so program` started by hand: the "program" the kernel started is ld.so.
            case AT_BASE:
                value = 0;
                break;
            case AT_PHDR:
                value = loader.headers;
                break;
            case AT_PHNUM:
                value = loader.header_count;
                break;
            case AT_PHENT:
                value = sizeof(Elf64_Phdr);
                break;
            case AT_ENTRY:
                value = loader.entry;
                break;
            case AT_EXECFN:
                value = stack.string(program.check.program);
                break;
            case AT_RANDOM:
                value = stack.bytes(random, sizeof random);
                break;
            case AT_PLATFORM:
            case AT_BASE_PLATFORM:
                if (value) value = stack.string(reinterpret_cast<const char*>(value));
                break;
            default:
                break;
        }
        add(key, value);
    }
    if (spec.bridge) add(kAuxvBridge, reinterpret_cast<uint64_t>(spec.bridge));
    add(AT_NULL, 0);
    return words;
}

std::string value_of(char* const* environment, const char* name) {
    size_t length = std::strlen(name);
    for (; environment && *environment; ++environment)
        if (std::strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return "";
}

// Fermata's variables are not the program's, but for those that libfermata in it reads.
bool is_for_program(const char* variable) {
    constexpr std::string_view kMemory = "FERMATA_MEMORY_DIR=";
    return std::strncmp(variable, kMemory.data(), kMemory.size()) == 0;
}

// Is there the auditor?
bool asks_which(const ProgramSpec& spec) {
    return !spec.front_dir.empty() && access((spec.front_dir + kWhich).c_str(), R_OK) == 0;
}

std::vector<std::string> command_line(const ProgramSpec& spec, const ProgramCheck& check,
                                      char* const* environment) {
    std::vector<std::string> argv{check.loader};
    std::string preload;
    auto add = [&](const std::string& path) {
        // --preload splits at blanks and colons; --library-path finds the bare name then.
        std::string word =
            path.find_first_of(" :") == std::string::npos ? path : path.substr(path.rfind('/') + 1);
        preload += (preload.empty() ? "" : ":") + word;
    };
    for (const std::string& path : spec.preload) add(path);
    if (spec.preload_abi && !spec.front_dir.empty())
        for (const std::string& name : check.mpi_names) {
            std::string path = spec.front_dir + "/" + name;
            if (std::find(spec.preload.begin(), spec.preload.end(), path) == spec.preload.end() &&
                access(path.c_str(), R_OK) == 0)
                add(path);
        }
    // Asked for every library, also those opened later (src/front/which). The option takes a list with colons
    // between; a bare name is found by --library-path.
    if (asks_which(spec)) {
        const std::string which = spec.front_dir + kWhich;
        argv.push_back("--audit");
        argv.push_back(which.find(':') == std::string::npos ? which : kWhich + 1);
    }
    if (!preload.empty()) {
        argv.push_back("--preload");
        argv.push_back(preload);
    }
    if (!spec.front_dir.empty()) {
        std::string search = value_of(environment, "LD_LIBRARY_PATH");
        argv.push_back("--library-path");
        argv.push_back(spec.front_dir + (search.empty() ? "" : ":" + search));
    }
    argv.push_back("--argv0");
    if (check.prefix.empty()) {
        argv.push_back(spec.argv0.empty() ? spec.program : spec.argv0);
    } else {
        argv.push_back(check.prefix[0]);
    }
    argv.push_back(check.binary);
    for (size_t i = 1; i < check.prefix.size(); ++i) argv.push_back(check.prefix[i]);
    argv.insert(argv.end(), spec.arguments.begin(), spec.arguments.end());
    return argv;
}

}  // namespace

StartedProgram load_program(const ProgramSpec& spec) {
    char* const* environment = spec.environment ? spec.environment : environ;
    StartedProgram program;
    program.check = inspect_program(spec.program, spec.front_dir, environment);
    if (!program.check.error.empty()) throw Error(program.check.error);

    ElfFile file;
    if (std::string why = file.read(program.check.loader); !why.empty())
        fail("the dynamic loader {} of {} {}", program.check.loader, program.check.binary, why);
    LoadedElf loader = map_elf(file, spec.area);
    program.loader = loader.range;
    program.entry = loader.entry;
    program.vdso = map_vdso();
    const bool anywhere = spec.area.empty();
    program.stack =
        map_stack(anywhere ? Range() : Range(loader.range.end() + (64ull << 20), spec.area.end()));

    StackBuilder stack(program.stack);
    std::vector<uint64_t> argv, envp;
    std::vector<std::string> command = command_line(spec, program.check, environment);
    // The program's own words lie one behind the other, as the kernel puts them.
    auto own = size_t(std::find(command.begin(), command.end(), "--argv0") - command.begin()) + 1;
    std::string line = command[own] + '\0';
    for (size_t i = own + 2; i < command.size(); ++i) line += command[i] + '\0';
    uint64_t at = stack.bytes(line.data(), line.size());
    program.command_line = reinterpret_cast<const char*>(at);
    program.command_line_end = program.command_line + line.size();
    for (size_t i = 0; i < command.size(); ++i) {
        bool in_line = i == own || i > own + 1;
        argv.push_back(in_line ? at : stack.string(command[i]));
        if (in_line) at += command[i].size() + 1;
    }
    for (char* const* e = environment; *e; ++e)
        if (std::strncmp(*e, "FERMATA_", 8) != 0 || is_for_program(*e)) envp.push_back(stack.string(*e));
    if (asks_which(spec)) {
        const uint64_t variable = stack.string(
            static_tls_variable(static_tls_of(program.check), value_of(environment, "GLIBC_TUNABLES")));
        envp.insert(envp.end(), 2, variable);
    }
    std::vector<uint64_t> auxv = auxv_for(spec, program, loader, stack);

    std::vector<uint64_t> words{argv.size()};
    words.insert(words.end(), argv.begin(), argv.end());
    words.push_back(0);
    words.insert(words.end(), envp.begin(), envp.end());
    words.push_back(0);
    words.insert(words.end(), auxv.begin(), auxv.end());
    program.stack_pointer = stack.words(words);
    return program;
}

void reset_signals() {
    for (int s = 1; s < 32; ++s) {
        if (s == SIGKILL || s == SIGSTOP) continue;
        struct sigaction action {};
        action.sa_handler = ignored_at_start(s) ? SIG_IGN : SIG_DFL;
        sigaction(s, &action, nullptr);
    }
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
}

int release_rseq() noexcept {
    if (!&__rseq_offset || !&__rseq_size || __rseq_size == 0) return 0;
    uint64_t thread;
    asm("movq %%fs:0, %0" : "=r"(thread));
    uint64_t area = thread + uint64_t(__rseq_offset);
    // glibc < 2.40 registers 32 bytes; later ones what the kernel asks for (AT_RSEQ_FEATURE_SIZE), at
    // least 32.
    unsigned long sizes[] = {32, __rseq_size, (getauxval(27) + 31) & ~31ul};
    long rc = 0;
    for (unsigned long size : sizes) {
        rc = sys(SYS_rseq, area, size, RSEQ_FLAG_UNREGISTER, kRseqSignature);
        if (!failed(rc)) return 0;
    }
    return int(rc);
}

void enter_program(const StartedProgram& program) {
    const std::string& path = program.check.program;
    prctl(PR_SET_NAME, path.substr(path.rfind('/') + 1).c_str());
    reset_signals();
    release_rseq();
    asm volatile(
        "mov %0, %%rsp\n"
        "mov %1, %%r11\n"
        "xor %%eax, %%eax\nxor %%ebx, %%ebx\nxor %%ecx, %%ecx\nxor %%edx, %%edx\n"
        "xor %%esi, %%esi\nxor %%edi, %%edi\nxor %%ebp, %%ebp\nxor %%r8d, %%r8d\n"
        "xor %%r9d, %%r9d\nxor %%r10d, %%r10d\nxor %%r12d, %%r12d\nxor %%r13d, %%r13d\n"
        "xor %%r14d, %%r14d\nxor %%r15d, %%r15d\n"
        "jmp *%%r11"
        :
        : "r"(program.stack_pointer), "r"(program.entry)
        : "memory");
    __builtin_unreachable();
}

}  // namespace fermata::split
