/*
 * Runs its arguments in the sandbox of the current directory, shows the output
 * as it comes, ends the command on Ctrl-C, and exits as the command did.
 *
 *     cc run_command.c $(pkg-config --cflags --libs shellyard) -o run_command
 *     ./run_command make test
 *
 * If it does not find libshellyard.so.0, run `ldconfig` as root once.
 */
#include <shellyard/shellyard.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

static struct sy_cancel *cancel;

static void
on_interrupt(int signal_number)
{
    (void)signal_number;
    sy_cancel_fire(cancel);
}

static int
show(void *arg, enum sy_stream stream, const char *bytes, size_t n)
{
    FILE *to = stream == SY_STDOUT ? stdout : stderr;

    (void)arg;
    return fwrite(bytes, 1, n, to) == n && fflush(to) == 0 ? 0 : 1;
}

int
main(int argc, char **argv)
{
    struct sy_engine_options options = {.size = sizeof(options)};
    struct sy_command command = {.size = sizeof(command)};
    struct sigaction action;
    struct sy_engine *engine = NULL;
    struct sy_result *result = NULL;
    char why[SY_WHY_MAX];
    int status = 125;

    if (argc < 2) {
        fprintf(stderr, "usage: run_command PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    cancel = sy_cancel_new();
    memset(&action, 0, sizeof(action));
    action.sa_handler = on_interrupt;
    sigaction(SIGINT, &action, NULL);

    command.argv = (const char *const *)&argv[1];
    command.timeout_ms = 60000;
    command.on_output = show;
    command.cancel = cancel;
    if (sy_engine_new(&engine, &options, why, sizeof(why)) != SY_OK ||
        sy_run(engine, &command, &result, why, sizeof(why)) != SY_OK) {
        fprintf(stderr, "run_command: %s\n", why);
    } else {
        if (sy_result_error(result)[0] != '\0') {
            fprintf(stderr, "run_command: %s\n", sy_result_error(result));
        }
        fprintf(stderr, "[exit code %d, %llu bytes, sandbox %s]\n", sy_result_exit_code(result),
                (unsigned long long)sy_result_total_bytes(result, SY_BOTH), sy_result_tier(result));
        status = sy_result_exit_code(result);
    }
    sy_result_free(result);
    sy_engine_free(engine);
    sy_cancel_free(cancel);
    return status;
}
