// This header says how often a job saves itself on one level: intervals by three formulas, and what any
// interval costs (source.h has their papers). Seconds; no clock and no I/O.
//
// An interval is the time from the end of one checkpoint to the beginning of the next. Of a forked writer the
// cost is the stand-still and what the writing slows the job down (journal::Measured::cost), and the restart
// point is one interval older until the writing has ended.
#pragma once

namespace fermata::predict {

// Failures of a job, as the formulas have them.
struct Job {
    double cost = 0;      // C: what it loses by a checkpoint
    double recovery = 0;  // R: from a failure until it computes again
    double mtbf = 0;      // M: mean time between two failures of the job
};

double young(double cost, double mtbf);
double daly(double cost, double mtbf);
// Solves for the interval with the least expected time, failures being exponential.
double exact(double cost, double mtbf);

// Expected time by the time that the work alone takes; infinity when that is beyond all numbers.
double stretch(const Job& job, double interval);
// Share of the time that is work.
double efficiency(const Job& job, double interval);
// Share of the work's time that the job takes longer: stretch - 1. "Every 10 min costs 3.1 %."
double loss(const Job& job, double interval);

// Time between failures of a job of so many processes that fail independently of each other.
double mtbf_of_job(double mtbf_of_process, double processes);

}  // namespace fermata::predict
