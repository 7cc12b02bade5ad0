/* SPDX-License-Identifier: MIT */
/*
 * The lists are /var/lib/dpkg/info/PACKAGE.list or PACKAGE:ARCHITECTURE.list: one path a line, as
 * the package has it, which may be of a link such as /lib where the system has /usr/lib. Lists of
 * other systems are not read.
 */
#include "cli/packages.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER "/var/lib/dpkg/info"
#define SUFFIX ".list"

/* The largest list that is read: Debian's largest has 5 MB. */
#define MAX_LIST ((off_t)1 << 25)
/* The most entries of the folder: Debian has some 70,000 packages. */
#define MAX_ENTRIES 1000000

/* Returns @path as packages had it before /lib became a link to /usr/lib. */
static const char *without_usr(const char *path)
{
	return strncmp(path, "/usr/", 5) == 0 ? path + 4 : path;
}

static int compare(const void *a, const void *b)
{
	return strcmp(without_usr(((const struct packaged *)a)->path),
		      without_usr(((const struct packaged *)b)->path));
}

/* Returns the text of the list @name of directory @dir, which the caller frees; NULL: none. */
static char *read_list(int dir, const char *name)
{
	const int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char *text = NULL;
	ssize_t n = -1;
	struct stat st;

	if (fd < 0)
		return NULL;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size <= MAX_LIST)
		text = malloc((size_t)st.st_size + 1);
	if (text)
		n = read(fd, text, (size_t)st.st_size);
	(void)close(fd);
	if (n < 0) {
		free(text);
		return NULL;
	}
	text[n] = '\0';
	return text;
}

/* Finds the file @path, which may be there several times, and fills in its package. */
static void take_path(struct packaged *files, size_t n, const char *path, const char *name)
{
	const struct packaged key = { .path = path };
	struct packaged *f = bsearch(&key, files, n, sizeof *files, compare);

	if (!f)
		return;
	while (f > files && compare(f - 1, &key) == 0)
		f--;
	for (; f < files + n && compare(f, &key) == 0; f++)
		(void)snprintf(f->package, sizeof f->package, "%.*s", (int)strcspn(name, ":"),
			       name);
}

static bool is_list(const char *name)
{
	const size_t size = strlen(name);

	return size > sizeof SUFFIX - 1 && strcmp(name + size - (sizeof SUFFIX - 1), SUFFIX) == 0;
}

/* Reads the list @entry, and looks each of its paths up. */
static void take_list(struct packaged *files, size_t n, int dir, const char *entry)
{
	char *text = read_list(dir, entry);
	char *name = text ? strndup(entry, strlen(entry) - (sizeof SUFFIX - 1)) : NULL;
	char *rest = text;
	char *line;

	while (name && (line = strsep(&rest, "\n")) != NULL)
		take_path(files, n, line, name);
	free(name);
	free(text);
}

void packages_find(struct packaged *files, size_t n)
{
	DIR *dir = opendir(FOLDER);
	const struct dirent *entry;

	for (size_t i = 0; i < n; i++)
		files[i].package[0] = '\0';
	if (!dir)
		return;
	qsort(files, n, sizeof *files, compare);
	for (int i = 0; i < MAX_ENTRIES && (entry = readdir(dir)) != NULL; i++)
		if (is_list(entry->d_name))
			take_list(files, n, dirfd(dir), entry->d_name);
	(void)closedir(dir);
}
