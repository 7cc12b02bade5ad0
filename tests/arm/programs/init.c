/* SPDX-License-Identifier: MIT */
/* What a kernel starts: runs each line of /commands, and says how it ended; then the machine is switched off. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	char line[512];
	FILE *commands;

	(void)mkdir("/proc", 0755);
	(void)mkdir("/tmp", 0755);
	(void)mount("proc", "/proc", "proc", 0, NULL);
	(void)mount("tmp", "/tmp", "tmpfs", 0, NULL);
	commands = fopen("/commands", "re");
	while (commands && fgets(line, sizeof line, commands)) {
		char *words[32], *at = line;
		int n = 0, status;

		line[strcspn(line, "\n")] = '\0';
		printf("== %s\n", line);
		(void)fflush(stdout);
		/* An underscore stands for a space within a word. */
		while (n < 31 && (words[n] = strsep(&at, " ")))
			for (char *p = words[n++]; *p; p++)
				*p = *p == '_' ? ' ' : *p;
		words[n] = NULL;
		if (!fork()) {
			execv(words[0], words);
			_exit(127);
		}
		/* The reader of a program that was killed ends behind it, and is a child of this process. */
		while (wait(&status) > 0)
			;
		printf("=\n");
		(void)fflush(stdout);
	}
	printf("done\n");
	(void)fflush(stdout);
	sync();
	return reboot(RB_POWER_OFF);
}
