/* SPDX-License-Identifier: MIT */
/*
 * Lists the loader's objects (dl_iterate_phdr(3)), and finds those that are never unloaded: the
 * program, the vDSO, libraries marked DF_1_NODELETE, and their dependencies. dlclose() may unload
 * all others.
 *
 * The mark counts once _dl_find_object() knows the library. It is listed before that, while
 * dlopen() relocates it, and vanishes if that fails.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <sys/auxv.h>

#include "host/self/self.h"
#include "safe/base/limits.h"
#include "safe/self/loader.h"

/* Present in glibc only; other C libraries never unload. */
__attribute__((weak)) const char *gnu_get_libc_version(void);

static int read_counters(struct dl_phdr_info *info, size_t size, void *data)
{
	struct fathom_self_counters *c = data;

	if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
		*c = (struct fathom_self_counters){ info->dlpi_adds, info->dlpi_subs };
	return 1;
}

struct fathom_self_counters fathom_self_count(void)
{
	struct fathom_self_counters c = { 0 };

	(void)dl_iterate_phdr(read_counters, &c);
	return c;
}

void fathom_self_await_loader(void)
{
	Dl_info info;

	/* dladdr() takes the lock that dlopen() and dlclose() hold throughout. */
	(void)dladdr((const void *)(uintptr_t)fathom_self_await_loader, &info);
}

/*
 * Returns the text at @off of PT_DYNAMIC's @strings, whether or not the loader has added the bias.
 */
static const char *text_at(const struct fathom_self_loaded *l, const char *strings, size_t off)
{
	uintptr_t at = (uintptr_t)strings;

	if (at < l->low || at >= l->high)
		at += l->bias;
	return at >= l->low && at < l->high && off < l->high - at ? (const char *)at + off : NULL;
}

static bool add_needed(struct fathom_self_loaded *l, const char *soname)
{
	char *copy = soname ? strdup(soname) : NULL;

	if (!soname)
		return true;
	if (!copy || !fathom_array_room(&l->needed, 1)) {
		free(copy);
		return false;
	}
	l->needed.items[l->needed.n++] = copy;
	return true;
}

/* Returns whether loading has succeeded, not only begun. */
static bool is_relocated(const struct fathom_self_loaded *l)
{
	struct fathom_self_object o;

	return fathom_self_object_at(l->low, &o) && o.start <= l->low && l->low < o.end;
}

/* Reads PT_DYNAMIC directly: the loader keeps it mapped during the callback. */
static bool read_dynamic(struct fathom_self_loaded *l, const ElfW(Dyn) * dynamic)
{
	const char *strings = NULL;
	const char *soname;

	for (size_t i = 0; i < FATHOM_MAX_DYNAMIC && dynamic[i].d_tag != DT_NULL; i++)
		if (dynamic[i].d_tag == DT_STRTAB)
			strings = (const char *)(uintptr_t)dynamic[i].d_un.d_ptr;
	for (size_t i = 0; i < FATHOM_MAX_DYNAMIC && dynamic[i].d_tag != DT_NULL; i++) {
		const size_t value = (size_t)dynamic[i].d_un.d_val;

		if (dynamic[i].d_tag == DT_FLAGS_1 && value & DF_1_NODELETE)
			l->stays |= is_relocated(l);
		if (dynamic[i].d_tag == DT_NEEDED && !add_needed(l, text_at(l, strings, value)))
			return false;
		soname = dynamic[i].d_tag == DT_SONAME ? text_at(l, strings, value) : NULL;
		if (soname && !l->soname) {
			l->soname = strdup(soname);
			if (!l->soname)
				return false;
		}
	}
	return true;
}

static const char *started_as(void)
{
	const char *path = (const char *)(uintptr_t)getauxval(AT_EXECFN);

	return path ? path : "";
}

static bool read_object(const struct dl_phdr_info *info, bool is_first,
			struct fathom_self_loaded *l)
{
	const ElfW(Dyn) *dynamic = NULL;
	const uintptr_t vdso = (uintptr_t)getauxval(AT_SYSINFO_EHDR);

	*l = (struct fathom_self_loaded){ .bias = (uintptr_t)info->dlpi_addr, .low = UINTPTR_MAX };
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *s = &info->dlpi_phdr[i];
		const uintptr_t start = l->bias + (uintptr_t)s->p_vaddr;

		if (s->p_type == PT_DYNAMIC)
			dynamic = (const void *)start;
		if (s->p_type != PT_LOAD)
			continue;
		l->low = start < l->low ? start : l->low;
		l->high = start + s->p_memsz > l->high ? start + (uintptr_t)s->p_memsz : l->high;
	}
	l->is_vdso = vdso && vdso >= l->low && vdso < l->high;
	l->stays = is_first || l->is_vdso || !gnu_get_libc_version;
	l->path = strdup(is_first ? started_as() : info->dlpi_name ? info->dlpi_name : "");
	return l->path && (!dynamic || l->low > l->high || read_dynamic(l, dynamic));
}

static int add_object(struct dl_phdr_info *info, size_t size, void *data)
{
	struct fathom_self_loaded_array *list = data;
	struct fathom_self_loaded *l;

	(void)size;
	if (!fathom_array_room(list, 1))
		return -1;
	l = list->items + list->n;
	list->n++;
	return read_object(info, list->n == 1, l) ? 0 : -1;
}

static bool is_called(const struct fathom_self_loaded *l, const char *soname)
{
	const char *slash = strrchr(l->path, '/');

	return (l->soname && strcmp(l->soname, soname) == 0) || strcmp(l->path, soname) == 0 ||
	       (slash && strcmp(slash + 1, soname) == 0);
}

/* Marks the dependencies of @from, which stay with it. The first object with a name counts. */
static bool spread(struct fathom_self_loaded *list, size_t n, const struct fathom_self_loaded *from)
{
	bool more = false;

	for (size_t i = 0; i < from->needed.n; i++) {
		size_t k = 0;

		while (k < n && !is_called(&list[k], from->needed.items[i]))
			k++;
		if (k == n || list[k].stays)
			continue;
		list[k].stays = true;
		more = true;
	}
	return more;
}

fathom_err fathom_self_list(struct fathom_self_loaded_array *ret)
{
	struct fathom_self_loaded_array list = { 0 };
	struct fathom_self_loaded *l;
	bool more = true;

	if (dl_iterate_phdr(add_object, &list)) {
		fathom_self_list_free(&list);
		return FATHOM_E_MEMORY;
	}
	l = list.items;
	while (more) {
		more = false;
		for (size_t i = 0; i < list.n; i++)
			more |= l[i].stays && spread(l, list.n, &l[i]);
	}
	*ret = list;
	return FATHOM_OK;
}

void fathom_self_list_free(struct fathom_self_loaded_array *list)
{
	struct fathom_self_loaded *l = list->items;

	for (size_t i = 0; i < list->n; i++) {
		for (size_t k = 0; k < l[i].needed.n; k++)
			free(l[i].needed.items[k]);
		fathom_array_free(&l[i].needed);
		free(l[i].path);
		free(l[i].soname);
	}
	fathom_array_free(list);
}
