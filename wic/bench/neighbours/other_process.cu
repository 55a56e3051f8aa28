// SPDX-FileCopyrightText: pushbroom authors
// SPDX-License-Identifier: Apache-2.0
//
// A neighbour in another process, and MPS. The process gets a byte for what to do: the number of a
// kind of neighbour to start, 'q' whether it is over, or 's' to stop it. It answers each with a
// line: "running" or "over", or the speed.
#include "wic/bench/neighbours/neighbours.cuh"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace
{
constexpr int answer_ms = 20000;
constexpr const char *mps = "nvidia-cuda-mps-control";

class other_process : public bystander
{
  public:
    other_process()
    {
        int to[2], from[2];
        if (pipe(to) != 0 || pipe(from) != 0) {
            bench_fail("no pipe to another process", __LINE__);
        }
        posix_spawn_file_actions_t files;
        posix_spawn_file_actions_init(&files);
        posix_spawn_file_actions_adddup2(&files, to[0], STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&files, from[1], STDOUT_FILENO);
        for (int end : {to[0], to[1], from[0], from[1]}) {
            posix_spawn_file_actions_addclose(&files, end);
        }
        char name[] = "wic-bench", option[] = "--serve-neighbour";
        char *arguments[] = {name, option, nullptr};
        const int rc =
            posix_spawn(&process_, "/proc/self/exe", &files, nullptr, arguments, environ);
        posix_spawn_file_actions_destroy(&files);
        close(to[0]);
        close(from[1]);
        to_ = to[1];
        from_ = from[0];
        if (rc != 0) {
            bench_fail("the other process does not start", __LINE__);
        }
        answer(); // it is ready
    }

    ~other_process() override
    {
        close(to_); // tells it to end
        close(from_);
        waitpid(process_, nullptr, 0);
    }

    void start(neighbour_kind kind) override
    {
        tell(static_cast<char>('0' + kind));
        answer();
    }

    bool over() override
    {
        tell('q');
        return answer() == "over\n";
    }

    double stop() override
    {
        tell('s');
        return atof(answer().c_str());
    }

  private:
    void tell(char what)
    {
        if (write(to_, &what, 1) != 1) {
            bench_fail("the other process has ended", __LINE__);
        }
    }

    std::string answer()
    {
        std::string line;
        for (char c = 0; c != '\n'; line += c) {
            pollfd ready = {from_, POLLIN, 0};
            if (::poll(&ready, 1, answer_ms) != 1 || read(from_, &c, 1) != 1) {
                bench_fail("the other process does not answer", __LINE__);
            }
        }
        return line;
    }

    pid_t process_ = 0;
    int to_ = -1, from_ = -1;
};

// Runs the control program with an argument, or with a line of input. Its exit status.
int control(const char *argument, const char *input)
{
    int in[2];
    if (pipe(in) != 0) {
        return -errno;
    }
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, in[0], STDIN_FILENO);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", 01, 0);
    posix_spawn_file_actions_addclose(&files, in[0]);
    posix_spawn_file_actions_addclose(&files, in[1]);
    char name[64], one[16];
    snprintf(name, sizeof name, "%s", mps);
    snprintf(one, sizeof one, "%s", argument ? argument : "");
    char *arguments[] = {name, argument ? one : nullptr, nullptr};
    pid_t process;
    int status = -1;
    if (posix_spawnp(&process, mps, &files, nullptr, arguments, environ) == 0) {
        if (input && write(in[1], input, strlen(input)) < 0) {
            status = -errno;
        }
        close(in[1]);
        in[1] = -1;
        waitpid(process, &status, 0);
    }
    posix_spawn_file_actions_destroy(&files);
    close(in[0]);
    if (in[1] >= 0) {
        close(in[1]);
    }
    return status;
}
} // namespace

std::unique_ptr<bystander> make_other_process()
{
    return std::make_unique<other_process>();
}

int serve_other_process()
{
    signal(SIGPIPE, SIG_IGN);
    local_bystander one;
    printf("ready\n");
    fflush(stdout);
    for (char what; read(STDIN_FILENO, &what, 1) == 1;) {
        if (what == 's') {
            printf("%.9g\n", one.stop());
        } else if (what == 'q') {
            printf(one.over() ? "over\n" : "running\n");
        } else {
            one.start(static_cast<neighbour_kind>(what - '0'));
            printf("running\n");
        }
        fflush(stdout);
    }
    return 0;
}

bool start_mps(std::string *why)
{
    char place[] = "/tmp/wic-bench-mps-XXXXXX";
    if (!mkdtemp(place)) {
        *why = "no directory for its daemon";
        return false;
    }
    setenv("CUDA_MPS_PIPE_DIRECTORY", place, 1);
    setenv("CUDA_MPS_LOG_DIRECTORY", place, 1);
    const int status = control("-d", nullptr);
    if (status != 0) {
        *why = std::string(mps) + (status < 0 ? " is not there" : " does not start");
        unsetenv("CUDA_MPS_PIPE_DIRECTORY");
        return false;
    }
    return true;
}

void stop_mps()
{
    control(nullptr, "quit\n");
    std::error_code ignored; // its files are only in the way
    std::filesystem::remove_all(getenv("CUDA_MPS_PIPE_DIRECTORY"), ignored);
}
