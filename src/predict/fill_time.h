// The fill-time law says how long a dump of all memory takes at best: as long as it takes to fill the
// storage, times the part of it that the memory is (source.h). No I/O.
#pragma once

namespace fermata::predict {

// Seconds to fill a disk: the same for all disks of a storage that is written evenly.
double fill_time(double disk_bytes, double disk_bandwidth);
// `ratio`: memory by storage.
double ideal_dump(double ratio, double fill_seconds);

// Runs of the paper took so many times the ideal time: HPCG with 16K processes 367 s for 37.7, with 32,752
// processes 653 s for 77.
inline constexpr double kMeasuredLeast = 653.0 / 77, kMeasuredMost = 367 / 37.7;

}  // namespace fermata::predict
