#include "api/job.h"

#include <time.h>

#include <cstring>

#include "base/text.h"
#include "base/version.h"

namespace fermata::api {

void fill(image::Writer& writer, const Staging& staging) {
    std::vector<std::byte> table = staging.table().encoded();
    writer.blob(kBlob, table.data(), table.size());
    for (const Staging::Piece& piece : staging.pieces()) writer.run(piece.address, piece.data, piece.length);
}

ImageReport report_of(const image::Summary& summary) {
    ImageReport report{summary.bytes, {}};
    std::memcpy(report.checksum, summary.checksum.bytes.data(), sizeof report.checksum);
    return report;
}

store::Manifest manifest_of(const Job& job, uint32_t number, int64_t step,
                            const std::vector<ImageReport>& images, const image::Key* key) {
    store::Manifest m;
    for (size_t r = 0; r < images.size(); ++r) {
        image::Checksum sum;
        std::memcpy(sum.bytes.data(), images[r].checksum, sizeof images[r].checksum);
        const Rank rank(static_cast<uint32_t>(r));
        m.images.push_back({rank, image::image_name(rank), images[r].bytes, sum, 0});
    }
    m.job = job.number;
    m.job_name = job.name;
    m.fermata = kVersion;
    m.generation = number;
    m.created = local_time_text(::time(nullptr));
    m.mpi = job.library;
    m.command = job.command;
    m.step = step;
    if (key) m.key_id = key->id();
    return m;
}

}  // namespace fermata::api
