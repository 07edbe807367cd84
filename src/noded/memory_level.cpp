#include "noded/memory_level.h"

#include <algorithm>

#include "base/clock.h"
#include "base/error.h"
#include "base/invariant.h"
#include "base/log.h"
#include "level/place.h"
#include "noded/inspection.h"
#include "noded/parity_work.h"
#include "tree/ranks.h"

namespace fermata::noded {
namespace {

// The program may ask for memory at any time; looking is a few files of /proc.
constexpr int64_t kRelieveMs = 2000;

}  // namespace

MemoryLevel::MemoryLevel(Job job, std::function<void(const wire::Message&)> up)
    : job_(std::move(job)), up_(std::move(up)) {
    level::sweep(job_.number, job_.node);
}

level::Memory& MemoryLevel::memory(Medium medium) {
    Shelf& its = shelf(medium);
    if (!its.memory) its.memory.emplace(NodePlace{job_.node, medium}, job_.number, job_.ckpt_dir);
    if (!its.server)
        its.server =
            std::make_unique<transfer::Server>(its.memory->folder(), job_.number, job_.key, job_.silent_ms());
    always(its.memory && its.server, "a directory of this node that nobody can read");
    return *its.memory;
}

std::string MemoryLevel::images() {
    memory();  // whose server it is
    return shelf(Medium::memory).addresses();
}

std::string MemoryLevel::streams() {
    if (!streams_)
        streams_ = std::make_unique<transfer::Server>(memory().folder(), job_.number, job_.key,
                                                      job_.silent_ms(), job_.streams);
    return streams_->addresses();
}

void MemoryLevel::expect(const wire::StartCopy& order) {
    arrivals_.expect(
        order,
        {job_.number, job_.node, job_.key, image::Key::from_file_or_none(job_.image_key), job_.silent_ms()},
        memory().folder());
}

// Gives null when nothing of the job is there. (A life before may have left something.)
level::Memory* MemoryLevel::found(Medium medium) {
    if (shelf(medium).memory || level::is_here({job_.node, medium}, job_.number)) return &memory(medium);
    return nullptr;
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
    } else if (auto* m = std::get_if<wire::Inspect>(&message)) {
        inspect(*m);
    } else if (auto* m = std::get_if<wire::KeepCopies>(&message)) {
        keep(Medium::memory, m->generations);
        keep(Medium::local, m->local);
    } else {
        return parity(message);
    }
    return true;
}

void MemoryLevel::keep(Medium medium, const std::vector<Generation>& generations) {
    try {
        level::Memory* memory = found(medium);
        if (!memory) return;
        if (!generations.empty()) return memory->keep(generations);
        Shelf& its = shelf(medium);
        its.fetcher.stop();
        if (medium == Medium::memory) parity_.stop();
        if (auto answer = looking_.finish()) answered(*answer);
        its.server.reset();
        memory->leave();
        its.memory.reset();
    } catch (const std::exception& error) {
        spdlog::warn("{}: {}", words_of(medium, job_.node), error.what());
    }
}

void MemoryLevel::make_room(const wire::MakeRoom& order, const Ranks& here) {
    std::string why;
    const Shelf& its = shelf(order.medium);
    try {
        uint64_t bytes = its.fetcher.coming();
        for (int pid : here.pids) bytes += level::memory_of_process(pid);
        memory(order.medium).make_room(order.generation, bytes);
    } catch (const std::exception& error) {
        why = error.what();
    }
    up_(wire::Room{order.epoch, job_.node, why, its.addresses()});
}

// Every byte of the images is looked at where ranks will read them: a damaged one can be taken from another
// place now, and not later. An image that comes to memory from a local directory is compared when it has
// come.
void MemoryLevel::look_for(const wire::AskCopies& question, const Ranks& here) {
    if (looking_.busy()) {
        if (question.number != question_) next_question_.emplace(question, here);
        return;
    }
    always(!looking_.busy(), "two looks through one node at once");
    question_ = question.number;
    wire::Copies answer{job_.node, {}, here.waiting, "", "", {}, {}, "", question.number, {}};
    try {
        const level::Memory& memory = this->memory();
        const level::Memory* local = found(Medium::local);
        answer.addresses = shelf(Medium::memory).addresses();
        answer.local_addresses = shelf(Medium::local).addresses();
        looking_.start([this, &memory, local, answer, own = own_node(), question, key_file = job_.image_key] {
            wire::Copies found = answer;
            try {
                image::KeyPointer key = image::Key::from_file_or_none(key_file);
                const auto given_up = [this] { return leaving_.load(); };
                auto add = [&](const level::Memory::Found& all, std::vector<wire::Copy>& copies) {
                    for (const level::Memory::Copy& one : all.intact)
                        copies.push_back({one.generation, static_cast<int32_t>(one.rank.number()),
                                          one.summary.bytes, one.summary.checksum.bytes});
                    if (found.damage.empty() && !all.damaged.empty()) found.damage = all.damaged.front().why;
                };
                const level::Memory::Found in_memory =
                    memory.look_for(question.generations, key.get(), given_up);
                add(in_memory, found.copies);
                for (const level::Memory::Flaw& one : in_memory.damaged)
                    found.flaws.push_back({one.generation, static_cast<int32_t>(one.rank.number()), one.why});
                if (local)
                    add(local->look_for(question.generations, key.get(), given_up,
                                        [&](Generation generation) {
                                            return std::count(question.in_place.begin(),
                                                              question.in_place.end(), generation) > 0;
                                        }),
                        found.local);
                found.parity = parity_in(own, question.generations);
                if (question.parity) add_parity_flaws(own, question.generations, found.flaws);
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

// Nobody waits for the answer to an older question.
void MemoryLevel::answered(const wire::Copies& answer) {
    if (!next_question_) return up_(answer);
    const auto [question, here] = *std::exchange(next_question_, std::nullopt);
    look_for(question, here);
}

void MemoryLevel::inspect(const wire::Inspect& order) {
    if (order.number <= last_inspection_ || inspecting_.busy()) return;
    always(!inspecting_.busy(), "two inspections of one node at once");
    last_inspection_ = order.number;
    std::vector<wire::Repair> mine;
    for (const wire::Repair& share : order.shares)
        if (share.host == job_.node) mine.push_back(share);
    if (mine.empty()) return;
    inspecting_.start([this, mine, number = order.number] {
        wire::Inspected answer =
            noded::inspect({job_.ckpt_dir, job_.image_key}, mine, [this] { return leaving_.load(); });
        answer.number = number;
        answer.host = job_.node;
        return answer;
    });
}

void MemoryLevel::copy(const wire::Flush& order) {
    if (copier_.busy() && copier_.number() == order.number) return copier_.limit(order.bytes_per_second);
    if (order.number <= last_copy_) return;  // it is over
    always(order.number > last_copy_, "an order that is done twice");
    last_copy_ = order.number;
    auto share = std::find_if(order.shares.begin(), order.shares.end(),
                              [this](const wire::Share& one) { return one.host == job_.node; });
    if (share == order.shares.end()) return;
    try {
        if (copier_.busy()) fail("another copy is under way");
        level::Copier::Order work{order.number, job_.number, {}, order.directory, {}, {}};
        work.key = image::Key::from_file_or_none(job_.image_key);
        for (Generation generation : order.generations)
            if (auto folder = memory(order.from).find(generation))
                work.from.emplace_back(generation, *folder);
        if (auto ranks = tree::Ranks::of(share->ranks))
            ranks->each([&](int32_t rank) { work.ranks.insert(static_cast<uint32_t>(rank)); });
        copier_.start(std::move(work), order.bytes_per_second);
    } catch (const std::exception& error) {
        up_(wire::Flushed{order.number, job_.node, 0, error.what()});
    }
}

// A newer order than that of a fetch under way takes its place: nobody waits for the old one.
void MemoryLevel::fetch(const wire::Fetch& order) {
    Shelf& its = shelf(order.into);
    if (order.number == its.last_fetch && its.fetcher.busy())
        return its.fetcher.limit(order.bytes_per_second);
    if (order.number <= its.last_fetch) return;  // it is over
    its.last_fetch = order.number;
    its.fetcher.stop();
    always(!its.fetcher.busy(), "two fetches into one medium at once");
    transfer::Fetcher::Order work;
    for (const wire::Errand& errand : order.errands)
        if (errand.to == job_.node) work.errands.push_back(errand);
    if (work.errands.empty()) return;
    try {
        work.number = order.number;
        work.job = job_.number;
        work.folder = memory(order.into).folder();
        work.into = order.into;
        work.key = job_.key;
        work.image_key = image::Key::from_file_or_none(job_.image_key);
        work.thorough = order.thorough;
        work.silent_ms = job_.silent_ms();
        its.fetcher.start(std::move(work), order.bytes_per_second);
    } catch (const std::exception& error) {
        wire::Fetched answer{order.number, job_.node, 0, {}};
        for (const wire::Errand& errand : work.errands)
            answer.failures.push_back({errand.from, error.what(), errand.medium});
        up_(answer);
    }
}

// Only where there is memory already.
OwnNode MemoryLevel::own_node() const {
    always(shelf(Medium::memory).memory.has_value(), "parity on a node that keeps nothing in memory");
    return {job_.number, job_.node, shelf(Medium::memory).memory->folder(), job_.key, {job_.silent_ms(), [] {
                                                                                           return false;
                                                                                       }}};
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
    for (Shelf& its : shelves_)
        if (auto result = its.fetcher.take())
            up_(wire::Fetched{result->number, job_.node, result->bytes, result->failures});
    if (auto answer = looking_.take()) answered(*answer);
    if (auto answer = inspecting_.take()) up_(*answer);
    relieve();
}

void MemoryLevel::relieve() {
    const auto& memory = shelf(Medium::memory).memory;
    if (!memory || monotonic_ms() < relieved_ms_ + kRelieveMs) return;
    relieved_ms_ = monotonic_ms();
    try {
        memory->relieve();
    } catch (const std::exception& error) {
        spdlog::warn("{}: {}", words_of(Medium::memory, job_.node), error.what());
    }
}

wire::Message MemoryLevel::filled(wire::Message message) const {
    const auto directory_of = [this](Medium medium, Generation generation) {
        const auto& memory = shelf(medium).memory;
        return memory ? memory->directory_of(generation) : std::string();
    };
    if (auto* m = std::get_if<wire::Save>(&message); m && m->directory.empty())
        m->directory = directory_of(m->medium, m->generation);
    if (auto* m = std::get_if<wire::Chosen>(&message); m && m->on_nodes)
        m->images = directory_of(m->medium, m->generation);
    return message;
}

}  // namespace fermata::noded
