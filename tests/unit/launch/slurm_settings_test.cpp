// What slurm.conf and `scontrol show config` say.
#include "launch/slurm_settings.h"

#include <gtest/gtest.h>

namespace fermata::launch {
namespace {

TEST(SlurmSettings, AreThoseOfTheFile) {
    const SlurmSettings found = SlurmSettings::in(
        "# KillWait=1\nClusterName=one\nKILLWAIT=30 JobRequeue=0 # both\nPreemptMode=SUSPEND,GANG\n"
        "Epilog=\"/etc/a b\"\nSlurmctldParameters=one,\\\n  preempt_send_user_signal\n"
        "NodeName=a CPUs=2 KillWait=7\nPartitionName=low GraceTime=60 Nodes=ALL\nPartitionName=high "
        "Nodes=ALL\n");
    EXPECT_EQ(found.number("KillWait", 5), 30);
    EXPECT_EQ(found.number("JobRequeue", 1), 0);
    EXPECT_EQ(found.number("SlurmdTimeout", 300), 300);
    EXPECT_TRUE(found.has("preemptmode", "gang"));
    EXPECT_FALSE(found.has("preemptmode", "requeue"));
    EXPECT_EQ(found.value("Epilog"), "/etc/a b");
    EXPECT_TRUE(found.has("SlurmctldParameters", "preempt_send_user_signal"));
    EXPECT_EQ(found.of_partitions("gracetime"), std::vector<std::string>{"60"});
    EXPECT_EQ(found.value("CPUs"), "");
}

TEST(SlurmSettings, AreThoseThatScontrolSays) {
    const SlurmSettings found = SlurmSettings::in(
        "Configuration data as of 2026-01-01T00:00:00\nKillWait                = 30 sec\n"
        "Epilog                  = (null)\nRequeueExit             = N/A\nMpiDefault              = pmix\n\n"
        "Slurmctld(primary) at a is UP\n");
    EXPECT_EQ(found.number("killwait", 0), 30);
    EXPECT_EQ(found.value("Epilog"), "");
    EXPECT_EQ(found.value("RequeueExit"), "");
    EXPECT_EQ(found.value("MpiDefault"), "pmix");
    EXPECT_TRUE(SlurmSettings::in("nothing here\n").empty());
}

}  // namespace
}  // namespace fermata::launch
