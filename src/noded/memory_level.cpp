#include "noded/memory_level.h"

#include <algorithm>

#include "base/error.h"
#include "base/log.h"
#include "level/place.h"
#include "noded/parity_work.h"
#include "tree/ranks.h"

namespace fermata::noded {

MemoryLevel::MemoryLevel(Job job, std::function<void(const wire::Message&)> up)
    : job_(std::move(job)), up_(std::move(up)) {
    level::sweep_memory(job_.number);
}

level::Memory& MemoryLevel::memory() {
    if (!memory_) memory_.emplace(job_.number, job_.node, job_.ckpt_dir);
    if (!server_)
        server_ =
            std::make_unique<transfer::Server>(memory_->folder(), job_.number, job_.key, job_.silent_ms());
    return *memory_;
}

bool MemoryLevel::from_root(const wire::Message& message, const Ranks& here) {
    if (auto* m = std::get_if<wire::MakeRoom>(&message)) {
        make_room(*m, here);
    } else if (auto* m = std::get_if<wire::AskCopies>(&message)) {
        look_for(*m, here);
    } else if (auto* m = std::get_if<wire::Flush>(&message)) {
        copy(*m);
    } else if (auto* m = std::get_if<wire::Fetch>(&message)) {
        fetch(*m);
    } else if (auto* m = std::get_if<wire::KeepCopies>(&message)) {
        keep(*m);
    } else {
        return parity(message);
    }
    return true;
}

void MemoryLevel::keep(const wire::KeepCopies& order) {
    try {
        // A life before may have left some, of which this one, gone on from files, has asked nothing.
        if (!memory_ && order.generations.empty() && level::is_in_memory(job_.number, job_.node)) memory();
        if (memory_ && order.generations.empty()) {
            fetcher_.stop();
            parity_.stop();
            looking_.wait();
            server_.reset();
            memory_->leave();
            memory_.reset();
        }
        if (memory_) memory_->keep(order.generations);
    } catch (const std::exception& error) {
        spdlog::warn("memory: {}", error.what());
    }
}

void MemoryLevel::make_room(const wire::MakeRoom& order, const Ranks& here) {
    std::string why;
    try {
        uint64_t bytes = fetcher_.coming();
        for (int pid : here.pids) bytes += level::memory_of_process(pid);
        memory().make_room(order.generation, bytes);
    } catch (const std::exception& error) {
        why = error.what();
    }
    up_(wire::Room{order.epoch, job_.node, why, addresses()});
}

// Every byte of the images is looked at: a damaged one can be taken from another node now, and not later.
void MemoryLevel::look_for(const wire::AskCopies& question, const Ranks& here) {
    if (looking_.busy()) return;  // asked again
    wire::Copies answer{job_.node, {}, here.waiting, "", "", {}};
    try {
        const level::Memory& memory = this->memory();
        answer.addresses = addresses();
        looking_.start([this, &memory, answer, own = own_node(), generations = question.generations,
                        key_file = job_.image_key] {
            wire::Copies found = answer;
            try {
                image::KeyPointer key = image::Key::from_file_or_none(key_file);
                level::Memory::Found all =
                    memory.look_for(generations, key.get(), [this] { return leaving_.load(); });
                for (const level::Memory::Copy& one : all.intact)
                    found.copies.push_back({one.generation, static_cast<int32_t>(one.rank.number()),
                                            one.summary.bytes, one.summary.checksum.bytes});
                found.damage = all.damage;
                found.parity = parity_in(own, generations);
            } catch (const std::exception& error) {
                found.damage = error.what();
            }
            return found;
        });
    } catch (const std::exception& error) {
        answer.damage = error.what();
        up_(answer);
    }
}

void MemoryLevel::copy(const wire::Flush& order) {
    if (copier_.busy() && copier_.number() == order.number) return copier_.limit(order.bytes_per_second);
    if (order.number <= last_copy_) return;  // it is over
    last_copy_ = order.number;
    auto share = std::find_if(order.shares.begin(), order.shares.end(),
                              [this](const wire::Share& one) { return one.host == job_.node; });
    if (share == order.shares.end()) return;
    try {
        if (copier_.busy()) fail("another copy is under way");
        level::Copier::Order work{order.number, job_.number, {}, order.directory, {}};
        for (Generation generation : order.generations)
            if (auto folder = memory().find(generation)) work.from.emplace_back(generation, *folder);
        if (auto ranks = tree::Ranks::of(share->ranks))
            ranks->each([&](int32_t rank) { work.ranks.insert(static_cast<uint32_t>(rank)); });
        copier_.start(std::move(work), order.bytes_per_second);
    } catch (const std::exception& error) {
        up_(wire::Flushed{order.number, job_.node, 0, error.what()});
    }
}

// A newer order than that of a fetch under way takes its place: nobody waits for the old one.
void MemoryLevel::fetch(const wire::Fetch& order) {
    if (order.number == last_fetch_ && fetcher_.busy()) return fetcher_.limit(order.bytes_per_second);
    if (order.number <= last_fetch_) return;  // it is over
    last_fetch_ = order.number;
    fetcher_.stop();
    transfer::Fetcher::Order work;
    for (const wire::Errand& errand : order.errands)
        if (errand.to == job_.node) work.errands.push_back(errand);
    if (work.errands.empty()) return;
    try {
        work.number = order.number;
        work.job = job_.number;
        work.folder = memory().folder();
        work.key = job_.key;
        work.image_key = image::Key::from_file_or_none(job_.image_key);
        work.thorough = order.thorough;
        work.silent_ms = job_.silent_ms();
        fetcher_.start(std::move(work), order.bytes_per_second);
    } catch (const std::exception& error) {
        wire::Fetched answer{order.number, job_.node, 0, {}};
        for (const wire::Errand& errand : work.errands)
            answer.failures.push_back({errand.from, error.what()});
        up_(answer);
    }
}

// Only where there is memory already.
OwnNode MemoryLevel::own_node() const {
    return {job_.number, job_.node, memory_->folder(), job_.key, {job_.silent_ms(), [] { return false; }}};
}

bool MemoryLevel::parity(const wire::Message& message) {
    auto* encode = std::get_if<wire::Encode>(&message);
    auto* rebuild = std::get_if<wire::Rebuild>(&message);
    if (!encode && !rebuild) return false;
    try {
        const auto own = [this] { return memory(), own_node(); };
        encode ? parity_.encode(*encode, job_.node, own) : parity_.rebuild(*rebuild, job_.node, own);
    } catch (const std::exception& error) {
        if (encode)
            up_(wire::Encoded{encode->number, job_.node, 0, error.what()});
        else
            up_(wire::Rebuilt{rebuild->number, job_.node, {}, error.what()});
    }
    return true;
}

void MemoryLevel::serve() {
    parity_.serve();
    if (auto result = copier_.take())
        up_(wire::Flushed{result->number, job_.node, result->bytes, result->error});
    if (auto result = fetcher_.take())
        up_(wire::Fetched{result->number, job_.node, result->bytes, result->failures});
    if (auto found = looking_.take()) up_(*found);
}

wire::Message MemoryLevel::filled(wire::Message message) const {
    if (auto* m = std::get_if<wire::Save>(&message); m && m->directory.empty() && memory_)
        m->directory = memory_->directory_of(m->generation);
    if (auto* m = std::get_if<wire::Chosen>(&message); m && m->memory && memory_)
        m->images = memory_->directory_of(m->generation);
    return message;
}

}  // namespace fermata::noded
