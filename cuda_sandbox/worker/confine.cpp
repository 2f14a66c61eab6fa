// Starts a program under Landlock: the wall around compilers where namespaces are forbidden.
// confine --read PATH ... --write PATH ... -- PROGRAM ARGUMENT ...
// Exit 96: it could not be confined as far as this kernel allows, so nothing was started.

#include <stdio.h>
#include <string.h>

#include "jail.hpp"

int main(int argc, char** argv) {
    kernelevo::Confinement confinement;
    int i = 1;
    for (; i + 1 < argc && strcmp(argv[i], "--") != 0; i += 2) {
        auto& list = strcmp(argv[i], "--write") == 0 ? confinement.write : confinement.read;
        list.push_back(argv[i + 1]);
    }
    if (i + 1 >= argc) return 96;
    bool known = kernelevo::landlock::version() > 0;
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) return 96;
    if (known && !kernelevo::landlock::restrict_program(confinement)) return 96;
    execv(argv[i + 1], argv + i + 1);
    perror(argv[i + 1]);
    return 96;
}
