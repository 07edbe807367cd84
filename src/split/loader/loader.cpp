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

struct LoadedElf {
    Range range;
    uint64_t entry = 0, headers = 0;
    uint16_t header_count = 0;
};

uint64_t reserve(uint64_t size, Range area, uint64_t align, const char* what) {
    long at;
    if (area.empty()) {
        at = raw_mmap(0, size + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE);
    } else {
        at = raw_mmap((area.begin() + align - 1) & ~(align - 1), size + align, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE);
    }
    if (failed(at)) fail("cannot reserve {} KiB for {}: {}", size >> 10, what, std::strerror(int(-at)));
    uint64_t begin = (uint64_t(at) + align - 1) & ~(align - 1);
    if (begin > uint64_t(at)) raw_munmap(uint64_t(at), begin - uint64_t(at));
    if (uint64_t end = uint64_t(at) + size + align; end > begin + size)
        raw_munmap(begin + size, end - begin - size);
    return begin;
}

int protection(uint32_t flags) {
    return (flags & PF_R ? PROT_READ : 0) | (flags & PF_W ? PROT_WRITE : 0) | (flags & PF_X ? PROT_EXEC : 0);
}

// Maps an ET_DYN file as fs/binfmt_elf.c does.
LoadedElf map_elf(const ElfFile& elf, Range area) {
    uint64_t low = ~0ull, high = 0, align = kPage;
    for (const auto& p : elf.segments) {
        if (p.p_type != PT_LOAD) continue;
        low = std::min(low, page_down(p.p_vaddr));
        high = std::max(high, page_up(p.p_vaddr + p.p_memsz));
        align = std::max<uint64_t>(align, p.p_align);
    }
    if (elf.header.e_type != ET_DYN || low >= high) fail("{} is not a dynamic loader", elf.path);
    auto [fd, error, why] = files::open_regular(elf.path, O_RDONLY);
    if (!fd) fail("cannot open {}: {}", elf.path, why);
    uint64_t begin = reserve(high - low, area, align, elf.path.c_str());
    uint64_t bias = begin - low;
    LoadedElf loaded;
    loaded.range = Range::sized(begin, high - low);
    loaded.entry = bias + elf.header.e_entry;
    loaded.header_count = elf.header.e_phnum;
    for (const auto& p : elf.segments) {
        if (p.p_type != PT_LOAD) continue;
        uint64_t at = page_down(bias + p.p_vaddr);
        uint64_t shift = bias + p.p_vaddr - at;
        uint64_t file_end = bias + p.p_vaddr + p.p_filesz, end = bias + p.p_vaddr + p.p_memsz;
        if (p.p_filesz) {
            long rc = raw_mmap(at, file_end - at, protection(p.p_flags), MAP_PRIVATE | MAP_FIXED, fd.get(),
                               p.p_offset - shift);
            if (failed(rc)) fail("cannot map {}: {}", elf.path, std::strerror(int(-rc)));
        }
        if (end > file_end && (p.p_flags & PF_W)) {
            // To the end of the page, also behind .bss: ld.so's first allocations come from there and must be
            // zero.
            uint64_t zero_end = page_up(file_end);
            std::memset(reinterpret_cast<void*>(file_end), 0, zero_end - file_end);
            if (page_up(end) > page_up(file_end)) {
                long rc = raw_mmap(page_up(file_end), page_up(end) - page_up(file_end), protection(p.p_flags),
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED);
                if (failed(rc)) fail("cannot map {}: {}", elf.path, std::strerror(int(-rc)));
            }
        }
        if (elf.header.e_phoff >= p.p_offset && elf.header.e_phoff < p.p_offset + p.p_filesz)
            loaded.headers = bias + p.p_vaddr + elf.header.e_phoff - p.p_offset;
    }
    return loaded;
}

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

// Builds what a new program finds on its stack, from the top down.
class StackBuilder {
  public:
    explicit StackBuilder(Range stack) : stack_(stack), at_(stack.end() - 16) {}
    uint64_t bytes(const void* data, size_t size) {
        at_ -= size;
        if (at_ < stack_.begin() + kPage || size > stack_.size() / 4)
            fail("arguments and environment are too long for a stack of {} KiB", stack_.size() >> 10);
        std::memcpy(reinterpret_cast<void*>(at_), data, size);
        return at_;
    }
    uint64_t string(const std::string& text) { return bytes(text.c_str(), text.size() + 1); }
    void align() { at_ &= ~15ull; }
    uint64_t words(const std::vector<uint64_t>& words) {
        align();
        if (words.size() & 1) at_ -= 8;  // rsp must be 16-aligned at argc
        return bytes(words.data(), words.size() * 8);
    }

  private:
    Range stack_;
    uint64_t at_;
};

std::vector<std::pair<uint64_t, uint64_t>> own_auxv() {
    std::string bytes = read_file("/proc/self/auxv");
    std::vector<std::pair<uint64_t, uint64_t>> result;
    for (size_t at = 0; at + 16 <= bytes.size(); at += 16) {
        uint64_t pair[2];
        std::memcpy(pair, bytes.data() + at, 16);
        if (pair[0] == AT_NULL) break;
        result.emplace_back(pair[0], pair[1]);
    }
    return result;
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

// The lower half's handlers would run with the upper half's thread pointer; the application finds what exec
// gives.
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
