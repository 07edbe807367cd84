#include "split/hop/second_half.h"

#include <elf.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/random.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/invariant.h"
#include "base/ranges.h"
#include "split/address/maps.h"
#include "split/address/raw.h"
#include "split/address/window.h"
#include "split/alloc/lower_alloc.h"
#include "split/fds/descriptors.h"
#include "split/gate.h"
#include "split/loader/elf_file.h"
#include "split/loader/first_stack.h"
#include "split/loader/loader.h"
#include "split/loader/place_elf.h"
#include "split/partition/partition.h"

extern "C" {
extern const char fermata_leap[], fermata_leap_end[];
}

namespace fermata::split::hop {

// Page 0 holds fermata_leap, then come the list of ranges, the bytes handed over, and the second half's first
// stack.
struct SecondHalf::Block {
    static constexpr uint64_t kList = 64 << 10;  // 4096 ranges; some ten are needed
    static constexpr uint64_t kStack = 8 << 20;  // as ulimit -s has it by default

    explicit Block(Range range) : range(range) {}
    void* list() const { return reinterpret_cast<void*>(range.begin() + kPage); }
    char* bytes() const { return reinterpret_cast<char*>(range.begin() + kPage + kList); }
    Range stack() const { return {range.end() - kStack, range.end()}; }

    Range range;
};

namespace {

constexpr const char* kVariable = "FERMATA_HANDED_OVER";  // address of the block, its size, size of the bytes

Range place(const ElfFile& file) {
    uint64_t high = 0, align = kPage;
    for (const auto& p : file.segments)
        if (p.p_type == PT_LOAD) {
            high = std::max(high, page_up(p.p_vaddr + p.p_memsz));
            align = std::max<uint64_t>(align, p.p_align);
        }
    return open_gap(high + 2 * align);
}

LoadedElf map_file(const std::string& path, ElfFile& file) {
    if (std::string why = file.read(path); !why.empty()) fail("{} {}", path, why);
    const Range gap = place(file);
    try {
        LoadedElf loaded = map_elf(file, gap);
        close_gaps();
        return loaded;
    } catch (...) {
        close_gaps();
        throw;
    }
}

std::vector<uint64_t> auxv_for(const std::string& program, const LoadedElf& executable,
                               const LoadedElf& loader, StackBuilder& stack) {
    unsigned char random[16];
    if (getrandom(random, sizeof random, 0) != ssize_t(sizeof random)) fail_errno("cannot get random bytes");
    std::vector<uint64_t> words;
    for (auto [key, value] : own_auxv()) {
        if (key == AT_BASE) value = loader.bias;
        if (key == AT_PHDR) value = executable.headers;
        if (key == AT_PHNUM) value = executable.header_count;
        if (key == AT_ENTRY) value = executable.entry;
        if (key == AT_EXECFN) value = stack.string(program);
        if (key == AT_RANDOM) value = stack.bytes(random, sizeof random);
        if ((key == AT_PLATFORM || key == AT_BASE_PLATFORM) && value)
            value = stack.string(reinterpret_cast<const char*>(value));
        words.insert(words.end(), {key, value});
    }
    words.insert(words.end(), {AT_NULL, 0});
    return words;
}

uint64_t build_stack(const Wanted& wanted, const std::string& variable, Range range,
                     const LoadedElf& executable, const LoadedElf& loader) {
    StackBuilder stack(range);
    std::vector<uint64_t> words{wanted.arguments.size()};
    for (const std::string& argument : wanted.arguments) words.push_back(stack.string(argument));
    words.push_back(0);
    for (const std::string& one : wanted.environment) words.push_back(stack.string(one));
    words.push_back(stack.string(variable));
    words.push_back(0);
    const std::vector<uint64_t> auxv = auxv_for(wanted.program, executable, loader, stack);
    words.insert(words.end(), auxv.begin(), auxv.end());
    return stack.words(words);
}

// Lists what the second half finds mapped: the kernel's own, its executable and loader, and the block.
std::vector<Range> kept(Range block, Range executable, Range loader) {
    std::vector<Range> all{block, executable, loader};
    for (const Mapping& m : read_maps())
        if (m.name.starts_with("[v") || m.name == "[stack]" || m.name == "[uprobes]") all.push_back(m.range);
    std::sort(all.begin(), all.end(), [](Range a, Range b) { return a.begin() < b.begin(); });
    return all;
}

std::vector<Range> dropped(const std::vector<Range>& kept) {
    std::vector<Range> lower;
    for (const Region& region : region_table().fixed())
        if (region.owner == Owner::lower && region.range.end() <= kWindow.begin() &&
            !kLowerArea.overlaps(region.range))
            lower.push_back(region.range);
    lower.push_back(kLowerArea);
    lower.push_back({kWindow.end(), kUserTop - kPage});
    std::sort(lower.begin(), lower.end(), [](Range a, Range b) { return a.begin() < b.begin(); });
    return difference(lower, kept);
}

// Descriptors of the lower half, but for those that it goes on with.
std::vector<Range> closed(std::vector<int> kept) {
    std::sort(kept.begin(), kept.end());
    std::vector<Range> all;
    auto at = static_cast<uint64_t>(lower_descriptor_base());
    for (int fd : kept) {
        if (fd < 0 || static_cast<uint64_t>(fd) < at) continue;
        if (static_cast<uint64_t>(fd) > at) all.emplace_back(at, static_cast<uint64_t>(fd));
        at = static_cast<uint64_t>(fd) + 1;
    }
    all.emplace_back(at, uint64_t{UINT32_MAX});
    return all;
}

void close_all(const std::vector<Range>& numbers) noexcept {
    for (const Range& range : numbers)
        if (failed(sys(SYS_close_range, range.begin(), range.end() - 1, 0)))  // before Linux 5.9
            for (uint64_t fd = range.begin(); fd < std::min<uint64_t>(range.end(), 1 << 20); ++fd)
                sys(SYS_close, fd);
}

}  // namespace

SecondHalf::SecondHalf(const Wanted& wanted) : closed_(closed(wanted.descriptors)) {
    const uint64_t size = page_up(kPage + Block::kList + wanted.handed_over.size() + kPage) + Block::kStack;
    void* memory = lower_map(size, PROT_READ | PROT_WRITE);
    if (memory == nullptr) fail("no memory for a second lower half");
    block_ = Range::sized(reinterpret_cast<uint64_t>(memory), size);
    try {
        ElfFile executable, loader;
        const LoadedElf first = map_file(wanted.program, executable);
        executable_ = first.range;
        if (executable.interpreter.empty()) fail("{} is no dynamic program", wanted.program);
        const LoadedElf second = map_file(executable.interpreter, loader);
        loader_ = second.range;
        entry_ = second.entry;

        const Block block(block_);
        std::memcpy(memory, fermata_leap, static_cast<size_t>(fermata_leap_end - fermata_leap));
        const std::vector<Range> ranges = dropped(kept(block_, executable_, loader_));
        always((ranges.size() + 1) * 16 <= Block::kList, "more ranges than a list of them holds");
        auto* word = static_cast<uint64_t*>(block.list());
        for (const Range& range : ranges) {
            *word++ = range.begin();
            *word++ = range.size();
        }
        word[0] = word[1] = 0;
        std::memcpy(block.bytes(), wanted.handed_over.data(), wanted.handed_over.size());
        stack_pointer_ = build_stack(wanted,
                                     fmt::format("{}={:x},{:x},{:x}", kVariable, block_.begin(),
                                                 block_.size(), wanted.handed_over.size()),
                                     block.stack(), first, second);
        if (failed(raw_mprotect(block_.begin(), kPage, PROT_READ | PROT_EXEC)))
            fail("memory of a second lower half cannot be made executable");
    } catch (...) {
        unmap();
        throw;
    }
}

SecondHalf::~SecondHalf() { unmap(); }

void SecondHalf::unmap() noexcept {
    for (Range range : {executable_, loader_})
        if (!range.empty()) raw_munmap(range.begin(), range.size());
    lower_unmap(block_.pointer(), block_.size());
    try {
        close_gaps();
    } catch (const std::exception&) {  // check() closes them
    }
}

void SecondHalf::enter() noexcept {
    const uint64_t all_signals = ~uint64_t{0};
    sys(SYS_rt_sigprocmask, SIG_SETMASK, &all_signals, nullptr, sizeof all_signals);
    release_rseq();
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sys(SYS_sigaltstack, &none, nullptr);
    sys(SYS_set_tid_address, nullptr);
    close_all(closed_);
    write_gs(0);
    const Block block(block_);
    using Leap = void (*)(void* ranges, uint64_t stack, uint64_t entry);
    reinterpret_cast<Leap>(block_.begin())(block.list(), stack_pointer_, entry_);
    __builtin_unreachable();
}

std::optional<std::string> SecondHalf::handed_over() {
    const char* text = std::getenv(kVariable);
    if (text == nullptr) return {};
    char* at = nullptr;
    const uint64_t begin = std::strtoull(text, &at, 16);
    const uint64_t size = *at == ',' ? std::strtoull(at + 1, &at, 16) : 0;
    const uint64_t bytes = *at == ',' ? std::strtoull(at + 1, &at, 16) : 0;
    const Range range = Range::sized(begin, size);
    always(kLowerArea.contains(range) && bytes < size, "a second lower half was started by hand");
    const Block block(range);
    std::string result(block.bytes(), bytes);
    ::unsetenv(kVariable);
    // Arguments and environment stay where they are.
    raw_munmap(range.begin(), block.stack().begin() - range.begin());
    return result;
}

}  // namespace fermata::split::hop
