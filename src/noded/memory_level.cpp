#include "noded/memory_level.h"

#include "base/error.h"
#include "base/log.h"
#include "level/place.h"

namespace fermata::noded {

MemoryLevel::MemoryLevel(Job job, std::function<void(const wire::Message&)> up)
    : job_(std::move(job)), up_(std::move(up)) {
    level::sweep_memory(job_.number);
}

level::Memory& MemoryLevel::memory() {
    if (!memory_) memory_.emplace(job_.number, job_.node, job_.ckpt_dir);
    return *memory_;
}

bool MemoryLevel::from_root(const wire::Message& message, const Ranks& here) {
    if (auto* m = std::get_if<wire::MakeRoom>(&message)) {
        make_room(*m, here);
    } else if (auto* m = std::get_if<wire::AskCopies>(&message)) {
        look_for(*m, here);
    } else if (auto* m = std::get_if<wire::Flush>(&message)) {
        copy(*m);
    } else if (auto* m = std::get_if<wire::KeepCopies>(&message)) {
        try {
            if (memory_ && m->generations.empty()) {
                memory_->leave();
                memory_.reset();
            }
            if (memory_) memory_->keep(m->generations);
        } catch (const std::exception& error) {
            spdlog::warn("memory: {}", error.what());
        }
    } else {
        return false;
    }
    return true;
}

void MemoryLevel::make_room(const wire::MakeRoom& order, const Ranks& here) {
    std::string why;
    try {
        uint64_t bytes = 0;
        for (int pid : here.pids) bytes += level::memory_of_process(pid);
        memory().make_room(order.generation, bytes);
    } catch (const std::exception& error) {
        why = error.what();
    }
    up_(wire::Room{order.epoch, job_.node, why});
}

void MemoryLevel::look_for(const wire::AskCopies& question, const Ranks& here) {
    wire::Copies answer{job_.node, {}, here.waiting, ""};
    try {
        image::KeyPointer key = image::Key::from_file_or_none(job_.image_key);
        level::Memory::Found found = memory().look_for(question.generations, key.get());
        for (const level::Memory::Copy& one : found.intact)
            answer.copies.push_back({one.generation, static_cast<int32_t>(one.rank.number()),
                                     one.summary.bytes, one.summary.checksum.bytes});
        answer.damage = found.damage;
    } catch (const std::exception& error) {
        answer.damage = error.what();
    }
    up_(answer);
}

void MemoryLevel::copy(const wire::Flush& order) {
    if (copier_.busy() && copier_.number() == order.number) return copier_.limit(order.bytes_per_second);
    try {
        if (copier_.busy()) fail("another copy is under way");
        level::Copier::Order work{order.number, job_.number, {}, order.directory};
        for (Generation generation : order.generations)
            // A node without ranks has nothing of it.
            if (auto folder = memory().find(generation)) work.from.emplace_back(generation, *folder);
        copier_.start(std::move(work), order.bytes_per_second);
    } catch (const std::exception& error) {
        up_(wire::Flushed{order.number, job_.node, 0, error.what()});
    }
}

void MemoryLevel::serve() {
    if (auto result = copier_.take())
        up_(wire::Flushed{result->number, job_.node, result->bytes, result->error});
}

wire::Message MemoryLevel::filled(wire::Message message) const {
    if (auto* m = std::get_if<wire::Save>(&message); m && m->directory.empty() && memory_)
        m->directory = memory_->directory_of(m->generation);
    if (auto* m = std::get_if<wire::Chosen>(&message); m && m->memory && memory_)
        m->images = memory_->directory_of(m->generation);
    return message;
}

}  // namespace fermata::noded
