#include "split/threads/lazy_binding.h"

#include <Zydis/Zydis.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstring>

#include "base/sys.h"
#include "split/address/maps.h"
#include "split/threads/xstate.h"

namespace fermata::split::threads {
namespace {

// Integer registers lie before what xsave writes.
constexpr uint64_t kBefore = 64, kLegacyAndHeader = 576, kLargest = 1 << 16;
// What the linker asks to be saved: SSE, AVX, MPX, AVX-512; APX since glibc 2.42.
constexpr uint64_t kSaved = 0xee | 1 << 19;

uint64_t end_of(const XstateLayout& layout) {
    uint64_t end = kLegacyAndHeader;
    for (int bit = 2; bit < 32; ++bit) {
        if ((layout.features & kSaved & uint64_t{1} << bit) == 0) continue;
        const XstateComponent& one = layout.component[bit];
        end = std::max<uint64_t>(end, uint64_t{one.offset} + one.size);
    }
    return end;
}

bool saves_registers(const ZydisDecodedInstruction& instruction) {
    return instruction.mnemonic == ZYDIS_MNEMONIC_XSAVE || instruction.mnemonic == ZYDIS_MNEMONIC_XSAVEC;
}

// From `at` on, where the registers are saved; 0 if they are not before the code goes elsewhere.
uint64_t where_saved(const ZydisDecoder& decoder, uint64_t at, uint64_t end) {
    for (int i = 0; i < 64; ++i) {
        ZydisDecodedInstruction instruction;
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, nullptr, reinterpret_cast<const void*>(at),
                                                        end - at, &instruction)))
            return 0;
        if (saves_registers(instruction)) return at;
        if (instruction.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE) return 0;
        at += instruction.length;
    }
    return 0;
}

}  // namespace

std::vector<LazyBinding> lazy_bindings(Range code) {
    ZydisDecoder decoder;
    ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    constexpr unsigned char kSub[] = {0x48, 0x2b, 0x25};  // sub rsp, [rip + offset]
    constexpr size_t kLength = sizeof kSub + 4;
    std::vector<LazyBinding> found;
    for (uint64_t at = code.begin(); at + kLength <= code.end(); ++at) {
        const auto* bytes = reinterpret_cast<const unsigned char*>(at);
        if (std::memcmp(bytes, kSub, sizeof kSub) != 0) continue;
        int32_t offset;
        std::memcpy(&offset, bytes + sizeof kSub, sizeof offset);
        uint64_t next = at + kLength, saved = where_saved(decoder, next, code.end());
        if (saved != 0) found.push_back({{next, saved + 1}, next + static_cast<uint64_t>(int64_t{offset})});
    }
    return found;
}

uint64_t larger_register_area(const XstateLayout& was, const XstateLayout& now) {
    if (end_of(now) <= end_of(was) && (now.features & kSaved & ~was.features) == 0) return 0;
    return (kBefore + end_of(now) + 63) / 64 * 64;
}

std::string enlarge_register_area(const LazyBinding& binding, uint64_t size) {
    std::vector<Mapping> maps = read_maps();
    auto map = std::find_if(maps.begin(), maps.end(), [&](const Mapping& one) {
        return one.range.contains(Range{binding.size_at, binding.size_at + sizeof size}) && !one.shared &&
               (one.prot & PROT_READ) != 0;
    });
    auto* place = reinterpret_cast<uint64_t*>(binding.size_at);
    if (map == maps.end() || *place > kLargest || (*place != 0 && *place < kBefore + kLegacyAndHeader))
        return "this CPU has more registers than the first, and where the dynamic linker saves them is not "
               "understood";
    // (0: it uses fxsave.)
    if (*place == 0 || *place >= size) return {};
    uint64_t page = page_down(binding.size_at), length = page_up(binding.size_at + sizeof size) - page;
    if (sys(SYS_mprotect, page, length, PROT_READ | PROT_WRITE) != 0)
        return "this CPU has more registers than the first, and the dynamic linker's memory cannot be "
               "written to";
    *place = size;
    sys(SYS_mprotect, page, length, map->prot);
    return {};
}

std::string fit_lazy_binding_to_cpu(const std::vector<Range>& linkers) {
    ThreadTable& all = *table();
    uint64_t size = larger_register_area(all.xstate, own_xstate_layout());
    if (size == 0) return {};
    bool found = false;
    for (Range linker : linkers)
        for (const LazyBinding& binding : lazy_bindings(linker)) {
            found = true;
            if (std::string why = enlarge_register_area(binding, size); !why.empty()) return why;
            for (uint32_t i = 0; i < all.high_water; ++i) {
                if (all.record[i].run != Run::stopped) continue;
                auto* frame = static_cast<ucontext_t*>(all.record[i].context);
                if (binding.taken.contains(static_cast<uint64_t>(frame->uc_mcontext.gregs[REG_RIP])))
                    return "a thread was about to save its registers where there is no room for those of "
                           "this CPU";
            }
        }
    return found ? ""
                 : "this CPU has more registers than the first, and where the dynamic linker saves them is "
                   "not found";
}

}  // namespace fermata::split::threads
