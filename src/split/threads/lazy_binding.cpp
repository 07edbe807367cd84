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
// All that any linker saves: x87, SSE, AVX, MPX, AVX-512, AMX's tiles, APX (glibc 2.41).
constexpr uint64_t kEver = 0xe00ef;

uint64_t end_of(const XstateLayout& layout, uint64_t saved) {
    uint64_t end = kLegacyAndHeader;
    for (int bit = 2; bit < 32; ++bit) {
        if ((layout.features & saved & uint64_t{1} << bit) == 0) continue;
        const XstateComponent& one = layout.component[bit];
        end = std::max<uint64_t>(end, uint64_t{one.offset} + one.size);
    }
    return end;
}

bool saves_registers(const ZydisDecodedInstruction& instruction) {
    return instruction.mnemonic == ZYDIS_MNEMONIC_XSAVE || instruction.mnemonic == ZYDIS_MNEMONIC_XSAVEC;
}

struct Save {
    uint64_t at = 0;
    uint64_t parts = 0;
};
// From `at` on, where the registers are saved, and which (eax; the linkers leave edx 0); `at` 0 if they are
// not before the code goes elsewhere.
Save next_save(const ZydisDecoder& decoder, uint64_t at, uint64_t end) {
    constexpr unsigned char kMove = 0xb8;  // mov eax, imm32
    uint64_t parts = 0;
    for (int i = 0; i < 64; ++i) {
        ZydisDecodedInstruction instruction;
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&decoder, nullptr, reinterpret_cast<const void*>(at),
                                                        end - at, &instruction)))
            return {};
        const auto* bytes = reinterpret_cast<const unsigned char*>(at);
        if (saves_registers(instruction)) return {at, parts};
        if (instruction.meta.branch_type != ZYDIS_BRANCH_TYPE_NONE) return {};
        if (bytes[0] == kMove && instruction.length == 5) {
            uint32_t value;
            std::memcpy(&value, bytes + 1, sizeof value);
            parts = value;
        }
        at += instruction.length;
    }
    return {};
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
        const uint64_t next = at + kLength;
        const Save save = next_save(decoder, next, code.end());
        if (save.at != 0)
            found.push_back({{next, save.at + 1}, next + static_cast<uint64_t>(int64_t{offset}), save.parts});
    }
    return found;
}

uint64_t larger_register_area(const XstateLayout& was, const XstateLayout& now, uint64_t saved) {
    if (end_of(now, saved) <= end_of(was, saved) && (now.features & saved & ~was.features) == 0) return 0;
    return (kBefore + end_of(now, saved) + 63) / 64 * 64;
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
    const XstateLayout here = own_xstate_layout();
    if (larger_register_area(all.xstate, here, kEver) == 0) return {};
    bool found = false;
    for (Range linker : linkers)
        for (const LazyBinding& binding : lazy_bindings(linker)) {
            found = true;
            const uint64_t size = larger_register_area(all.xstate, here, binding.saved);
            if (size == 0) continue;
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
