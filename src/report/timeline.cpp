#include "report/timeline.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "base/text.h"
#include "draw/svg.h"
#include "report/html.h"

namespace fermata::report {
namespace {

constexpr double kWidth = 1100, kLeft = 190, kRight = 1085, kTop = 40, kRow = 34, kBar = 18;

struct Scale {
    int64_t begin = 0, end = 1;
    double at(double ms) const {
        const double share =
            (ms - static_cast<double>(begin)) / static_cast<double>(std::max<int64_t>(1, end - begin));
        return kLeft + (kRight - kLeft) * std::clamp(share, 0.0, 1.0);
    }
};

// One kind of bars in one row: those that would lie on top of each other are one.
class Lane {
  public:
    Lane(draw::Svg& svg, const Scale& scale, double y, double height, const char* kind, double least)
        : svg_(svg), scale_(scale), y_(y), height_(height), kind_(kind), least_(least) {}

    void bar(double begin_ms, double end_ms, const std::string& tip) {
        const double x = scale_.at(begin_ms), end = std::max(scale_.at(end_ms), x + 0.8);
        if (end <= last_ + least_) return;
        svg_.rect(std::max(x, last_ > x ? last_ : x), y_, end - std::max(x, last_ > x ? last_ : x), height_,
                  kind_, tip);
        last_ = end;
    }

  private:
    draw::Svg& svg_;
    const Scale& scale_;
    const double y_, height_;
    const char* kind_;
    const double least_;
    double last_ = -1;
};

void legend(draw::Svg& svg, double y) {
    double x = kLeft;
    struct {
        const char *kind, *text;
    } constexpr kKinds[] = {
        {"start", "start"},       {"restart", "restart"},       {"run", "ranks run"},
        {"stand", "stand still"}, {"write", "write"},           {"flush", "copy to another level"},
        {"lost", "lost work"},    {"masked", "masked failure"}, {"fail", "failure"}};
    for (auto& [kind, text] : kKinds) {
        svg.rect(x, y - 9, 12, 10, kind);
        svg.text({x + 16, y}, text, "dim");
        x += 30 + 6 * static_cast<double>(std::string_view(text).size());
    }
}

void draw_checkpoints(draw::Svg& svg, const Scale& scale, const journal::Life& life, double y, double least) {
    Lane stand(svg, scale, y, kBar / 2, "stand", least),
        write(svg, scale, y + kBar / 2, kBar / 2, "write", least);
    Lane copies(svg, scale, y + kBar + 1, 5, "flush", least);
    for (const journal::CheckpointTaken& one : life.checkpoints) {
        if (!one.ok) continue;
        const auto captured = static_cast<double>(one.captured());
        stand.bar(captured - one.standing * 1000, captured,
                  fmt::format("{}: stood still for {}", one.generation, human_duration(one.standing)));
        if (one.bandwidth > 0)
            write.bar(static_cast<double>(one.end) - one.bytes / one.bandwidth * 1000,
                      static_cast<double>(one.end),
                      fmt::format("{}: wrote {} in {}", one.generation,
                                  human_size(static_cast<uint64_t>(one.bytes)),
                                  human_duration(one.bytes / one.bandwidth)));
    }
    for (const journal::CopyMade& one : life.copies)
        copies.bar(static_cast<double>(one.end) - one.seconds * 1000, static_cast<double>(one.end),
                   one.ok ? fmt::format("{} copied to {} in {}", one.generation, one.level,
                                        human_duration(one.seconds))
                          : fmt::format("{} not copied to {}: {}", one.generation, one.level, one.why));
}

void draw_life(draw::Svg& svg, const Scale& scale, const journal::History& job, size_t at, double y) {
    const journal::Life& life = job.lives[at];
    const double least =
        std::max(0.5, (kRight - kLeft) * static_cast<double>(3 * std::min(job.lives.size(), kMostLives)) /
                          static_cast<double>(kMostShapes));
    const auto before = at > 0 ? job.lives[at - 1].failure() : std::nullopt;
    const int64_t begin = before ? before->time : life.start;
    const auto failure = life.failure();
    const int64_t ran_until = failure ? failure->time : life.end;
    svg.text({4, y + 13},
             fmt::format("life {}{}", at + 1, life.restored.empty() ? "" : " from " + life.restored));
    const int64_t ready = life.running ? life.running : life.end;
    Lane(svg, scale, y, kBar, before ? "restart" : "start", 0)
        .bar(static_cast<double>(begin), static_cast<double>(ready),
             fmt::format("{} in {}", before ? "restart" : "start",
                         human_duration(static_cast<double>(ready - begin) / 1000)));
    if (life.running)
        Lane(svg, scale, y, kBar, "run", 0)
            .bar(static_cast<double>(life.running), static_cast<double>(ran_until),
                 fmt::format("ran for {}",
                             human_duration(static_cast<double>(ran_until - life.running) / 1000)));
    if (const double lost = job.lost_after(at); lost > 0)
        Lane(svg, scale, y, kBar, "lost", 0)
            .bar(static_cast<double>(failure->time) - lost * 1000, static_cast<double>(failure->time),
                 fmt::format("{} of work were lost", human_duration(lost)));
    draw_checkpoints(svg, scale, life, y, least);
    Lane masked(svg, scale, y - 4, kBar + 8, "masked", least);
    for (const journal::Masked& one : life.masked)
        masked.bar(static_cast<double>(one.death()), static_cast<double>(one.end),
                   fmt::format("{}; all went on after {}", one.line, human_duration(one.seconds)));
    if (failure) {
        const double x = scale.at(static_cast<double>(failure->time));
        svg.rect(x - 1, y - 5, 2.5, kBar + 10, "fail", failure->why.empty() ? "failure" : failure->why);
    }
}

}  // namespace

std::string timeline(const journal::History& job) {
    Scale scale{job.lives.front().start, 0};
    for (const journal::Life& life : job.lives) {
        scale.begin = std::min(scale.begin, life.start);
        scale.end = std::max(scale.end, life.end);
    }
    scale.end = std::max(scale.end, scale.begin + 1);
    std::vector<size_t> shown;
    const size_t first = kMostLives / 8;
    for (size_t i = 0; i < job.lives.size(); ++i)
        if (i < first || i + (kMostLives - first) >= job.lives.size()) shown.push_back(i);
    const size_t left_out = job.lives.size() - shown.size();
    const double height = kTop + kRow * static_cast<double>(shown.size() + (left_out > 0)) + 30;
    draw::Svg svg(kWidth, height, "timeline of all lives of the job");
    legend(svg, 16);
    double y = kTop;
    for (size_t i : shown) {
        if (left_out > 0 && i == job.lives.size() - (kMostLives - first)) {
            svg.text({kLeft, y + 13}, fmt::format("{} lives between are not drawn", left_out), "dim");
            y += kRow;
        }
        draw_life(svg, scale, job, i, y);
        y += kRow;
    }
    svg.line({kLeft, y}, {kRight, y}, "axis");
    for (int i = 0; i <= 4; ++i) {
        const double ms = static_cast<double>(scale.end - scale.begin) * i / 4;
        const double x = kLeft + (kRight - kLeft) * i / 4;
        svg.line({x, y}, {x, y + 4}, "axis");
        svg.text({x, y + 18}, i == 0 ? utc(scale.begin) : "+ " + human_duration(ms / 1000), "dim",
                 i == 0   ? draw::Svg::Anchor::start
                 : i == 4 ? draw::Svg::Anchor::end
                          : draw::Svg::Anchor::middle);
    }
    return svg.inner();
}

}  // namespace fermata::report
