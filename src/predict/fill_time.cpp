#include "predict/fill_time.h"

namespace fermata::predict {

double fill_time(double disk_bytes, double disk_bandwidth) { return disk_bytes / disk_bandwidth; }

double ideal_dump(double ratio, double fill_seconds) { return ratio * fill_seconds; }

}  // namespace fermata::predict
