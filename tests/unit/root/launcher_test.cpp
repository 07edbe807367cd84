// The root with a launcher that is no process: what it asks of one, in which order, and what it makes of its
// end.
#include "launch/launcher.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <thread>

#include "fake_settings.h"
#include "root/root.h"
#include "tree/local_socket.h"
#include "wire/auth.h"

namespace fermata::root {
namespace {

class FakeLauncher : public launch::Launcher {
  public:
    std::vector<std::string> calls;
    std::optional<int> end;             // at once, or
    std::optional<int> end_when_asked;  // at ask_to_end(), or
    std::optional<int> end_when_killed;
    bool fails = false;

    void start() override {
        calls.push_back("start");
        if (fails) fail("no such launcher");
    }
    std::optional<int> ended() override { return end; }
    void ask_to_end() override {
        calls.push_back("ask_to_end");
        end = end_when_asked;
    }
    void kill() override {
        calls.push_back("kill");
        end = end_when_killed;
    }
    void hand_on(int signal, bool to_all) override {
        calls.push_back(fmt::format("signal {}{}", signal, to_all ? " to all" : ""));
        if (signal == SIGUSR2) end = 12;
    }
    std::string missing() const override { return "node n7 does not answer"; }
};

class LauncherTest : public ::testing::Test {
  protected:
    void SetUp() override {
        settings = fake_settings(&directory);
        root = std::make_unique<Root>(settings, wire::random_key());
        root->listen_at(tree::listen_local(directory, "control"));
    }
    void TearDown() override {
        root.reset();
        std::filesystem::remove_all(directory);
    }
    // A client at the control socket; its answer.
    std::string ask(const ControlRequest& request) {
        Fd socket = tree::connect_local(directory, "control");
        std::string line = to_json(request) + "\n", answer;
        EXPECT_EQ(::send(socket.get(), line.data(), line.size(), 0), static_cast<ssize_t>(line.size()));
        char buffer[4096];
        for (ssize_t n; (n = ::recv(socket.get(), buffer, sizeof buffer, 0)) > 0;)
            answer.append(buffer, static_cast<size_t>(n));
        return answer;
    }

    std::string directory;
    Settings settings;
    FakeLauncher launcher;
    std::unique_ptr<Root> root;
};

TEST_F(LauncherTest, ItsExitCodeIsTheJobs) {
    launcher.end = 42;
    EXPECT_EQ(root->run(launcher), 42);
    EXPECT_EQ(launcher.calls, (std::vector<std::string>{"start"}));
    EXPECT_FALSE(root->asked_to_end());
}

TEST_F(LauncherTest, WhatCannotBeStartedIsAnError) {
    launcher.fails = true;
    EXPECT_THROW(root->run(launcher), Error);
    EXPECT_EQ(launcher.calls, (std::vector<std::string>{"start"}));
}

TEST_F(LauncherTest, ACancelledJobIsAskedToEnd) {
    launcher.end_when_asked = 0;
    std::string status, cancelled;
    std::thread client([&] {
        ControlRequest request;
        request.verb = "status";
        status = ask(request);
        request.verb = "cancel";
        cancelled = ask(request);
    });
    EXPECT_EQ(root->run(launcher), 128 + SIGTERM);
    client.join();
    EXPECT_EQ(launcher.calls, (std::vector<std::string>{"start", "ask_to_end"}));
    EXPECT_TRUE(root->asked_to_end());
    EXPECT_NE(status.find("\"phase\":\"launcher\""), std::string::npos) << status;
    EXPECT_NE(cancelled.find("cancelled"), std::string::npos) << cancelled;
}

TEST_F(LauncherTest, WhoDoesNotEndIsKilled) {
    launcher.end_when_killed = 137;
    std::thread client([&] {
        ControlRequest request;
        request.verb = "cancel";
        ask(request);
    });
    EXPECT_EQ(root->run(launcher), 128 + SIGTERM);
    client.join();
    EXPECT_EQ(launcher.calls, (std::vector<std::string>{"start", "ask_to_end", "kill"}));
}

TEST_F(LauncherTest, SignalsAreHandedOn) {
    ::kill(::getpid(),
           SIGINT);  // blocked since the root was made; a process's signal is for the launcher alone
    ::kill(::getpid(), SIGUSR2);
    EXPECT_EQ(root->run(launcher), 12);
    EXPECT_EQ(launcher.calls, (std::vector<std::string>{"start", fmt::format("signal {}", SIGINT),
                                                        fmt::format("signal {}", SIGUSR2)}));
}

}  // namespace
}  // namespace fermata::root
