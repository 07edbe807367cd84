#include "lower/capture.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <thread>
#include <utility>

#include "base/cpu_level.h"
#include "base/invariant.h"
#include "base/ranges.h"
#include "lower/cpu.h"
#include "lower/image_parts.h"
#include "lower/mutex_areas.h"
#include "lower/node_ranks.h"
#include "lower/program_children.h"
#include "lower/services.h"
#include "lower/text_ranges.h"
#include "split/devices/kinds.h"
#include "split/process/state.h"
#include "split/shared/describe.h"
#include "split/threads/records.h"
#include "split/threads/stop.h"
#include "store/store.h"

namespace fermata::lower {
namespace {

bool by_address(const Range& a, const Range& b) { return a.begin() < b.begin(); }

// Ranks of this node, which share its processors and memory.
unsigned neighbours() { return static_cast<unsigned>(std::max(1, node_ranks())); }

// The phases of a capture, in the order in which capture_image() calls them; each finds what the ones before
// have left in the members.
class Capture {
  public:
    Capture(const CaptureOrder& order, LastImage& last)
        : order_(order), last_(last), base_(last.forget()), program_threads_(split::threads::table()) {}

    void note_threads();
    void note_ids();
    void note_process();
    void note_objects();
    void capture_devices();
    void collect_memory();
    void begin_image();
    void decide_to_fork();
    void choose_increment();
    void find_mutexes();
    void plan_runs();
    void share_text();
    void refer_to_last();
    CapturedImage prepare();

  private:
    image::Writer& writer() { return made_.image->writer(); }
    void warn(const std::vector<std::string>& lines) {
        made_.warnings.insert(made_.warnings.end(), lines.begin(), lines.end());
    }
    void plan(const split::MapEntry& map, const std::vector<Range>& same);

    const CaptureOrder& order_;
    LastImage& last_;
    const uint32_t base_;  // generation of the last image
    const split::threads::ThreadTable* program_threads_;
    std::optional<files::Folder> folder_;  // of the generation
    const std::vector<split::process::Child> children_ = split::process::children();
    split::process::Captured process_;
    std::vector<char> objects_;  // of MPI, for people
    std::optional<Increment> increment_;
    split::CollectedMemory memory_;
    std::vector<TextUnit> text_;
    std::vector<Range> all_text_;   // address order
    std::vector<Range> written_;    // by this image itself
    std::vector<Range> unchanged_;  // left to the last image
    CapturedImage made_;
};

void Capture::note_threads() { made_.warnings = split::threads::describe_stopped_threads(); }

// Into upper memory, before its content is collected.
void Capture::note_ids() {
    if (std::string line = note_children(order_.node, children_, true); !line.empty())
        made_.warnings.push_back(line);
}

void Capture::note_process() {
    folder_.emplace(store::open_pending(order_.directory, order_.identity.job, order_.identity.generation));
    split::process::Keep keep{*folder_, order_.files && !order_.key, the_upper()->noted_files};
    if (static bool told = false; order_.files && order_.key && !std::exchange(told, true))
        warn(
            {"files that the program writes are not kept with encrypted checkpoints: after a restart they "
             "hold what was written later"});
    process_ = split::process::capture(process_limits(), keep, children_);
    warn(process_.warnings);
}

void Capture::note_objects() {
    objects_.resize(the_upper()->describe(nullptr, 0));
    the_upper()->describe(objects_.data(), objects_.size());
}

void Capture::capture_devices() { split::devices::capture_all(); }

// Memory that is written from here on is seen by the next image.
void Capture::collect_memory() {
    increment_.emplace(last_, base_, order_.options, made_.warnings);
    memory_ = split::collect_memory(increment_->tracker());
}

// Makes the file, and gives it everything but the content of memory.
void Capture::begin_image() {
    always(!made_.image && folder_ && increment_, "an image that begins twice, or too early");
    image::WriteOptions how = order_.options.write;
    how.key = order_.key;
    if (uint64_t longest = increment_->largest_block()) how.largest_block = longest;
    how.processors = std::max(1u, std::thread::hardware_concurrency() / neighbours());
    const image::Place place(*folder_, how.layout.file_of(order_.identity.rank, order_.lowest_of_node));
    made_.image = std::make_unique<PendingImage>(place, order_.identity, how, std::move(process_.copies));
    auto part = [this](const char* name, const auto& bytes) {
        writer().blob(name, bytes.data(), bytes.size());
    };
    part(kMemoryPart, split::encode(memory_.table));
    // For people, and for tests that compare it with the table without using our code.
    part(kMapsPart, memory_.maps);
    part(kProcessPart, process_.state);
    part(kProgramPart, order_.program);
    const Anchors anchors = anchors_here();
    writer().blob(kAnchorsPart, &anchors, sizeof anchors);
    const CpuLevel* level = cpu_level(order_.cpu);
    part(kCpuPart, level ? limited_to(*level, cpu_instructions()) : cpu_instructions());
    part(kMpiPart, objects_);
    part(kSharedPart, split::shared::describe(memory_.table, memory_.objects, process_limits().descriptors,
                                              made_.warnings));
}

void Capture::decide_to_fork() {
    made_.forked = order_.options.forked;
    if (!made_.forked || order_.options.trust_memory) return;
    std::string why = too_little_memory(memory_.table.data_size(), neighbours());
    made_.forked = why.empty();
    if (!why.empty()) warn({why});
}

void Capture::choose_increment() {
    always(increment_ && program_threads_, "an increment of nothing");
    auto threads = reinterpret_cast<uint64_t>(program_threads_);
    increment_->choose(memory_, {threads, threads + sizeof *program_threads_});
}

// The search writes to the thread table. A child's search stays in the child, where a later increment would
// not find it.
void Capture::find_mutexes() {
    made_.mutexes.emplace(mutex_areas(memory_.table), increment_->all_same());
    made_.mutexes->in_shared_memory();
    if (!made_.forked || increment_->follows()) {
        made_.mutexes->in_own_memory();
        made_.mutexes.reset();
    }
    increment_->choose_threads();
}

// Which memory the image holds. Memory that a child's copy would not hold as it is now is written first, by
// this process.
void Capture::plan_runs() {
    text_ = text_units(memory_.table);
    for (const TextUnit& unit : text_) all_text_.insert(all_text_.end(), unit.begin(), unit.end());
    std::sort(all_text_.begin(), all_text_.end(), by_address);
    const auto& maps = memory_.table.maps;
    for (size_t i = 0; i < maps.size(); ++i)
        if (memory_.not_in_a_copy(maps[i])) plan(maps[i], increment_->same(i));
    writer().later();
    for (size_t i = 0; i < maps.size(); ++i)
        if (!memory_.not_in_a_copy(maps[i])) plan(maps[i], increment_->same(i));
    std::sort(written_.begin(), written_.end(), by_address);
    for (size_t i = 1; i < written_.size(); ++i)
        always(!written_[i].overlaps(written_[i - 1]), "memory that an image holds twice");
}

void Capture::plan(const split::MapEntry& map, const std::vector<Range>& same) {
    std::vector<Range> kept = intersection(map.runs, same);
    unchanged_.insert(unchanged_.end(), kept.begin(), kept.end());
    std::vector<Range> runs = difference(map.runs, kept);
    for (const Range& run : difference(runs, all_text_)) writer().run(run.begin(), run.pointer(), run.size());
    written_.insert(written_.end(), runs.begin(), runs.end());
}

// Memory that is probably the same in many ranks goes into files that all ranks have in common.
void Capture::share_text() {
    for (const TextUnit& unit : text_) writer().share(intersection(unit, written_));
}

// The rest comes from earlier images; what this one covers, the next one may leave to it.
void Capture::refer_to_last() {
    if (increment_->refers()) {
        always(!last_.content.references.empty(), "an image that refers to no earlier one");
        std::sort(unchanged_.begin(), unchanged_.end(), by_address);
        writer().keep(last_.content, unchanged_);
    }
    if (increment_->follows())
        for (const split::MapEntry& map : memory_.table.maps)
            made_.covered.insert(made_.covered.end(), map.runs.begin(), map.runs.end());
}

// From here on nothing allocates: a child made by a bare fork can write.
CapturedImage Capture::prepare() {
    always(made_.image && folder_, "an image that is prepared before it begins");
    writer().prepare();
    made_.table = std::move(memory_.table);
    return std::move(made_);
}

}  // namespace

CapturedImage capture_image(const CaptureOrder& order, LastImage& last) {
    Capture capture(order, last);
    capture.note_threads();
    capture.note_ids();
    capture.note_process();
    capture.note_objects();
    capture.capture_devices();
    capture.collect_memory();
    capture.begin_image();
    capture.decide_to_fork();
    capture.choose_increment();
    capture.find_mutexes();
    capture.plan_runs();
    capture.share_text();
    capture.refer_to_last();
    return capture.prepare();
}

void write_image(CapturedImage& captured) {
    always(captured.image != nullptr, "an image that is written before it is captured");
    image::Writer& writer = captured.image->writer();
    split::make_readable(captured.table);
    writer.write_first();
    auto search = [&captured] {
        if (captured.mutexes) captured.mutexes->in_own_memory();
    };
    if (captured.forked) {
        split::let_fork_copy(captured.table, true);
        captured.forked = captured.image->child().start(writer, search);
        split::let_fork_copy(captured.table, false);
        if (!captured.forked)
            captured.warnings.push_back("no process for the image: the job stands still while it is written");
    }
    if (!captured.forked) {
        search();
        writer.write_rest();
    }
    split::restore_protection(captured.table);
}

}  // namespace fermata::lower
