/* The wall clock: true time plus an offset. Monotonic clocks, and waits on them, stay as they are. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <sys/time.h>
#include <time.h>

#include "shim.h"

#define SECOND_NS 1000000000LL

/* No machine has been up for that long, so a later time is one of the wall clock. */
#define LONGEST_UPTIME_S 1000000000

static int64_t offset_ns(void) { return control == NULL ? 0 : atomic_load(&control->clock_offset_ns); }

static void move(struct timespec *time, int64_t by_ns) {
    int64_t ns = time->tv_nsec + by_ns % SECOND_NS;
    time->tv_sec += by_ns / SECOND_NS + (ns < 0 ? -1 : ns / SECOND_NS);
    time->tv_nsec = ns < 0 ? ns + SECOND_NS : ns % SECOND_NS;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = REAL(clock_gettime)(clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        move(now, offset_ns());
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec time;
    if (zone != NULL)
        REAL(gettimeofday)(now, zone);
    clock_gettime(CLOCK_REALTIME, &time);
    *now = (struct timeval){time.tv_sec, time.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *now) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    if (now != NULL)
        *now = time.tv_sec;
    return time.tv_sec;
}

/* Whoever waits until a time of the wall clock has taken it from the clock that is wrong; the kernel's is not. */
static struct timespec deadline(const struct timespec *until) {
    struct timespec true_time = *until;
    if (until->tv_sec > LONGEST_UPTIME_S)
        move(&true_time, -offset_ns());
    return true_time;
}

int pthread_cond_timedwait(pthread_cond_t *restrict condition, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until) {
    struct timespec true_time = deadline(until);
    return REAL(pthread_cond_timedwait)(condition, mutex, &true_time);
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until) {
    struct timespec true_time = deadline(until);
    return REAL(sem_timedwait)(semaphore, &true_time);
}
