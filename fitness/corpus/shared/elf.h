// Finds a function by its name in the library that another one is of, without asking the loader.
#include <elf.h>
#include <string.h>
static const void* symbol(const void* neighbour, const char* name) {
    const char* base = (const char*)((long)neighbour & ~4095l);
    while (memcmp(base, "\177ELF", 4)) base -= 4096;
    auto* file = (const Elf64_Ehdr*)base;
    auto* part = (const Elf64_Phdr*)(base + file->e_phoff);
    while (part->p_type != PT_DYNAMIC) ++part;
    const char *symbols = 0, *names = 0;
    for (auto* d = (const Elf64_Dyn*)(base + part->p_vaddr); d->d_tag; ++d) {
        const char* at = (const char*)d->d_un.d_ptr;
        if (at < base) at = base + d->d_un.d_ptr;
        if (d->d_tag == DT_SYMTAB) symbols = at;
        if (d->d_tag == DT_STRTAB) names = at;
    }
    for (auto* s = (const Elf64_Sym*)symbols; (const char*)s < names; ++s)
        if (s->st_value && !strcmp(names + s->st_name, name)) return base + s->st_value;
    return 0;
}
