// OutputEnd has what one copy of a rank wrote to its standard output and the root does not have yet. The
// node daemon of a leader forwards from it what is stable; that of a replica keeps it for a promotion.
#pragma once

#include "replay/memory.h"
#include "replay/rules.h"
#include "replay/types.h"

namespace fermata::replay {

class OutputEnd {
  public:
    explicit OutputEnd(Rules rules = {}) : rules_(rules) {}

    // `at`: so many records had been told when it was written.
    void write(Position at, const uint8_t* bytes, size_t size, bool leads) {
        if (!rules_.have(Rule::keep_output) && !leads) {
            written_ += size;  // dropped: its leader says the same
            return;
        }
        chunks_.push_back(Chunk{at, written_, Bytes(bytes, bytes + size)});
        written_ += size;
    }
    // The root counts the bytes of the rank, whoever wrote them.
    void root_has(uint64_t count) {
        size_t over = 0;
        while (over < chunks_.size() && chunks_[over].begin + chunks_[over].bytes.size() <= count) over++;
        chunks_.erase(chunks_.begin(), chunks_.begin() + static_cast<ptrdiff_t>(over));
    }
    // The bytes that the root gets next, behind its `count`: of writes that stand on stable records only.
    Bytes ready(Position stable, uint64_t count) const {
        Bytes next;
        for (const Chunk& chunk : chunks_) {
            if (chunk.at > stable && rules_.have(Rule::output_stable)) break;
            uint64_t have = count + next.size();
            if (chunk.begin + chunk.bytes.size() <= have) continue;
            uint64_t skip = have > chunk.begin ? have - chunk.begin : 0;
            next.insert(next.end(), chunk.bytes.begin() + static_cast<ptrdiff_t>(skip), chunk.bytes.end());
        }
        return next;
    }

  private:
    struct Chunk {
        Position at;
        uint64_t begin;
        Bytes bytes;
    };
    Rules rules_;
    Vec<Chunk> chunks_;
    uint64_t written_ = 0;
};

}  // namespace fermata::replay
