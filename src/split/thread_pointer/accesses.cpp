#include "split/thread_pointer/accesses.h"

#include <Zydis/Zydis.h>
#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "split/thread_pointer/functions.h"

namespace fermata::split::thread_pointer {
namespace {

constexpr size_t kLongest = 15;  // bytes of an instruction

// Offsets from the thread pointer that thread-locals and the control block have.
constexpr int64_t kLowestLocal = -(int64_t{1} << 24), kControlBlock = 4096;

// The other segments' prefixes come only as padding.
bool is_legacy_prefix(uint8_t byte) {
    return byte == 0x66 || byte == 0x67 || byte == 0xf0 || byte == 0xf2 || byte == 0xf3 || byte == 0x2e;
}

const uint8_t* after_prefixes(const uint8_t* at) {
    while (is_legacy_prefix(*at)) ++at;
    if ((*at & 0xf0) == 0x40) ++at;  // REX
    return at;
}

// mov, sub, xor or cmp of a register with fs:0x28.
bool reads_canary(const uint8_t* prefix) {
    static const uint8_t kAddress[] = {0x25, 0x28, 0, 0, 0};
    const uint8_t* opcode = after_prefixes(prefix + 1);
    bool reads = *opcode == 0x8b || *opcode == 0x2b || *opcode == 0x33 || *opcode == 0x3b;
    return reads && (opcode[1] & 0xc7) == 0x04 && std::memcmp(opcode + 2, kAddress, sizeof kAddress) == 0;
}

// One-byte opcodes of instructions that may have an operand in memory (Intel SDM volume 2, appendix A, table
// A-2); of groups that have other forms, too, the whole.
bool may_use_memory(uint8_t opcode) {
    if (opcode < 0x40) return (opcode & 7) < 4 || opcode == 0x0f;
    if (opcode < 0x80)
        return opcode == 0x62 || opcode == 0x63 || opcode == 0x69 || (opcode >= 0x6b && opcode <= 0x6f);
    if (opcode < 0xc0)
        return opcode <= 0x8f || (opcode >= 0xa0 && opcode <= 0xa7) || (opcode >= 0xaa && opcode <= 0xaf);
    return opcode <= 0xc1 || (opcode >= 0xc4 && opcode <= 0xc7) || (opcode >= 0xd0 && opcode <= 0xdf) ||
           opcode >= 0xf6;
}

// Without offsets in registers an access has an absolute address: some bytes after its prefix comes the 0x25
// that says so (modrm 0x04, SIB 0x25), after at most a second prefix, REX and three bytes of opcode. Skips
// blocks in which no 0x64 has one, at the speed of memory: GPU drivers and compilers, which hwloc loads to
// ask for devices, are 100 MB of code. Compiled to vector instructions.
uint64_t skip_blocks(uint64_t at, uint64_t end) {
    constexpr uint64_t kBlock = 256, kReach = 8;
    for (; at + kBlock + kReach <= end; at += kBlock) {
        const auto* bytes = reinterpret_cast<const uint8_t*>(at);
        uint8_t any = 0;
        for (uint64_t i = 0; i < kBlock; ++i) {
            uint8_t absolute = uint8_t(bytes[i + 3] == 0x25) | uint8_t(bytes[i + 4] == 0x25) |
                               uint8_t(bytes[i + 5] == 0x25) | uint8_t(bytes[i + 6] == 0x25) |
                               uint8_t(bytes[i + 7] == 0x25);
            any |= uint8_t(bytes[i] == kFs) & absolute;
        }
        if (any != 0) break;
    }
    return at;
}

// Could an access that we look for begin with the 0x64 at `prefix`? Cheap, and never wrongly no.
bool may_be_access(const uint8_t* prefix, bool offsets_in_registers) {
    if (reads_canary(prefix)) return false;
    const uint8_t* opcode = after_prefixes(prefix + 1);
    if (!may_use_memory(*opcode)) return false;
    bool one_byte = *opcode != 0x0f && *opcode != 0xc4 && *opcode != 0xc5 && *opcode != 0x62;
    if (one_byte && *opcode >= 0xa0 && *opcode <= 0xa3) return true;  // address in the instruction
    if (one_byte && opcode[1] >= 0xc0) return false;                  // registers only
    if (offsets_in_registers) return true;
    // Some byte from here is the modrm of an absolute address.
    for (const uint8_t* modrm = opcode + 1; modrm < opcode + 4; ++modrm) {
        if ((modrm[0] & 0xc7) != 0x04 || modrm[1] != 0x25) continue;
        int32_t offset;
        std::memcpy(&offset, modrm + 2, sizeof offset);
        if (offset >= kLowestLocal && offset < kControlBlock) return true;
    }
    return false;
}

class Search {
  public:
    explicit Search(const MappedObject& object) : object_(object) {
        ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
        walker_ = decoder_;
        ZydisDecoderEnableMode(&walker_, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
    }

    Accesses run() {
        for (Range code : object_.code) look_through(code);
        return std::move(found_);
    }

  private:
    void look_through(Range code) {
        for (uint64_t at = code.begin(); at < code.end() && found_.doubt.empty();) {
            if (!object_.offsets_in_registers) at = skip_blocks(at, code.end());
            const void* hit = std::memchr(reinterpret_cast<const void*>(at), kFs, code.end() - at);
            if (hit == nullptr) return;
            at = reinterpret_cast<uint64_t>(hit);
            // Too near to the end for a look at what follows: decoding knows where to stop.
            bool room = code.end() - at > kLongest;
            if (room && !may_be_access(static_cast<const uint8_t*>(hit), object_.offsets_in_registers)) {
                ++at;
                continue;
            }
            if (Place place = place_of(at, code); place.function) {
                decode(place.range);
                at = place.range.end();
            } else {
                if (decodes_as_access(at, code.end()) && !inside_an_instruction(at, place.range))
                    doubt(at, "looks like an access outside of all functions");
                ++at;
            }
        }
    }

    // A function, or what lies between two: the C runtime's own begin and end, padding, assembler.
    struct Place {
        Range range;
        bool function;
    };
    Place place_of(uint64_t address, Range code) {
        if (!functions_) functions_ = functions_of(object_);  // most objects never come here
        auto next = std::upper_bound(functions_->begin(), functions_->end(), address,
                                     [](uint64_t at, Range f) { return at < f.begin(); });
        Range gap = code;
        if (next != functions_->begin()) {
            Range before = *std::prev(next);
            if (address < before.end()) return {before, true};
            gap = {std::max(gap.begin(), before.end()), gap.end()};
        }
        if (next != functions_->end()) gap = {gap.begin(), std::min(gap.end(), next->begin())};
        return {gap, false};
    }

    // Decoded from the begin of a gap, is the byte at `address` anything but the first prefix of an
    // instruction?
    bool inside_an_instruction(uint64_t address, Range gap) {
        ZydisDecodedInstruction instruction;
        uint64_t at = gap.begin();
        for (; at <= address; at += instruction.length) {
            const auto* bytes = reinterpret_cast<const uint8_t*>(at);
            if (!ZYAN_SUCCESS(
                    ZydisDecoderDecodeInstruction(&walker_, nullptr, bytes, gap.end() - at, &instruction)))
                return false;
            const uint8_t* prefix = bytes;
            while (is_legacy_prefix(*prefix)) ++prefix;
            if (reinterpret_cast<uint64_t>(prefix) == address) return false;
        }
        return true;
    }

    bool decodes_as_access(uint64_t at, uint64_t end) {
        ZydisDecodedInstruction instruction;
        ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
        return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder_, reinterpret_cast<const void*>(at), end - at,
                                                   &instruction, operands)) &&
               plain_access(instruction, operands);
    }

    void decode(Range function) {
        ZydisDecodedInstruction instruction;
        for (uint64_t at = function.begin(); at < function.end(); at += instruction.length) {
            const auto* bytes = reinterpret_cast<const uint8_t*>(at);
            // The walk needs lengths only, which cost a third of the whole.
            if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&walker_, nullptr, bytes, function.end() - at,
                                                            &instruction)))
                return doubt(at, "does not decode");
            const uint8_t* prefix = bytes;
            while (is_legacy_prefix(*prefix)) ++prefix;
            if (*prefix != kFs || reads_canary(prefix)) continue;
            if (!decodes_as_access(at, function.end()))
                return doubt(at, "has an FS prefix on something unusual");
            found_.prefixes.push_back(reinterpret_cast<uint64_t>(prefix));
        }
    }

    static bool plain_access(const ZydisDecodedInstruction& instruction,
                             const ZydisDecodedOperand* operands) {
        for (int i = 0; i < instruction.operand_count_visible; ++i) {
            const ZydisDecodedOperand& operand = operands[i];
            if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || operand.mem.segment != ZYDIS_REGISTER_FS)
                continue;
            bool in_register =
                operand.mem.base != ZYDIS_REGISTER_NONE || operand.mem.index != ZYDIS_REGISTER_NONE;
            int64_t offset = operand.mem.disp.has_displacement != 0 ? operand.mem.disp.value : 0;
            return operand.mem.type == ZYDIS_MEMOP_TYPE_MEM &&
                   (in_register || (offset >= kLowestLocal && offset < kControlBlock));
        }
        return false;
    }

    void doubt(uint64_t at, const char* what) {
        found_.doubt =
            fmt::format("{}: code at {:#x} {}", object_.name.empty() ? "the program" : object_.name,
                        at - object_.base, what);
    }

    const MappedObject& object_;
    std::optional<std::vector<Range>> functions_;
    ZydisDecoder decoder_, walker_;
    Accesses found_;
};

}  // namespace

Accesses find_accesses(const MappedObject& object) { return Search(object).run(); }

}  // namespace fermata::split::thread_pointer
