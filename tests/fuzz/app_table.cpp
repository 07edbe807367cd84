// The table of an image of a program's own state: what is read is written again as the same.
#include "api/table.h"
#include "base/error.h"
#include "fuzz.h"

namespace fermata::fuzz {
namespace {

Verdict run_app_table(Input input) {
    try {
        auto bytes = api::Table::decoded(input.data(), input.size(), "input").encoded();
        require(api::Table::decoded(bytes.data(), bytes.size(), "input").encoded() == bytes,
                "a table was changed by reading it");
        return Verdict::accepted;
    } catch (const Error&) {
        return Verdict::refused;
    }
}

std::vector<Bytes> app_table_seeds() {
    api::Table table;
    table.step = 41;
    api::SavedEntry psi;
    psi.kind = api::Kind::array;
    psi.element = *api::element_of(FERMATA_COMPLEX_DOUBLE);
    psi.shape = {32, 32};
    psi.parts = {{{{0, 1}, {8, 16}, {1, 2}}, 1 << 20, 8 * 16 * 16}};
    table.entries = {{"psi", psi},
                     {"rng", {{api::Kind::object, *api::element_of(FERMATA_BYTE), {}}, {{{}, 1 << 21, 77}}}}};
    auto bytes = table.encoded();
    auto* at = reinterpret_cast<const uint8_t*>(bytes.data());
    return {{at, at + bytes.size()}};
}

}  // namespace

const Target app_table{"app_table", run_app_table, nullptr, app_table_seeds, nullptr};

}  // namespace fermata::fuzz
