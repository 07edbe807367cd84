// A Source names where a formula comes from: its name, its equation in words, its paper with year and place.
#pragma once

namespace fermata::predict {

struct Source {
    const char* name;
    const char* formula;
    const char* paper;
};

inline constexpr Source kYoung = {
    "Young (1974)", "tau = sqrt(2 C M)",
    "J. W. Young, A first order approximation to the optimum checkpoint interval, CACM 17(9), 1974"};
inline constexpr Source kDaly = {
    "Daly (2006)", "tau = sqrt(2 C M) (1 + sqrt(C / 2M) / 3 + (C / 2M) / 9) - C for C < 2M, else M",
    "J. T. Daly, A higher order estimate of the optimum checkpoint interval for restart dumps, FGCS 22(3), "
    "2006: the higher-order model"};
inline constexpr Source kExact = {
    "exact", "(1 - tau/M) e^(tau/M) = e^(-C/M), for failures that are exponential",
    "the minimum over tau of Daly's expected time, FGCS 22(3), 2006; in closed form M. Bougeret and others, "
    "SC'11"};
inline constexpr Source kExpected = {"expected time", "T = M e^(R/M) (e^((tau+C)/M) - 1) Ts / tau",
                                     "J. T. Daly, FGCS 22(3), 2006: the complete model of the wall time"};
inline constexpr Source kLevels = {
    "several levels", "loss = sum of sqrt(2 r C); period of a level sqrt(2 C / r), to first order",
    "A. Benoit and others, Towards optimal multi-level checkpointing, IEEE TC 66(7), 2017"};
inline constexpr Source kFillTime = {
    "fill-time law", "ideal time of a dump = (RAM / storage) x (size of a disk / its bandwidth)",
    "J. Cao and others, System-level scalable checkpoint-restart for petascale computing, ICPADS 2016, "
    "table 1"};
inline constexpr Source kFullReplication = {
    "full replication", "MTTI = n mu / 2b with n = 1 + 4^b / binom(2b, b), for failures that are exponential",
    "H. Casanova, Y. Robert, F. Vivien, D. Zaidouni, On the impact of process replication ..., FGCS 51, "
    "2015"};
inline constexpr Source kPartialReplication = {
    "partial replication", "MTTI = integral of (1 - F(t)^2)^b (1 - F(t))^s dt over t >= 0",
    "the mean of the time at which a single process or both of a pair are gone; Casanova and others, FGCS "
    "51, 2015, for s = 0"};
inline constexpr Source kNotReplaced = {
    "interval, dead copies not replaced", "tau = sqrt(2 M C), M the MTTI; loss sqrt(2 C / M)",
    "A. Benoit, T. Herault, V. Le Fevre, Y. Robert, Replication is more efficient than you think, SC'19"};
inline constexpr Source kReplaced = {
    "interval, dead copies replaced at each checkpoint",
    "tau = (3 C / (4 b l^2))^(1/3), loss (3 C l sqrt(b) / sqrt(2))^(2/3), l = 1 / mu",
    "A. Benoit, T. Herault, V. Le Fevre, Y. Robert, Replication is more efficient than you think, SC'19"};

}  // namespace fermata::predict
