/* SPDX-License-Identifier: MIT */
/*
 * embedding_php SCRIPT SHAPE FOLDER: runs the script by PHP's library, on a thread of its own. Its
 * headers are no package of every release: what is called of it is declared here.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int php_embed_init(int argc, char **argv);
void php_embed_shutdown(void);
int zend_eval_string(char *text, void *ret, const char *name);

static char **arguments;

static void *run(void *unused)
{
	char text[8192];

	(void)unused;
	php_embed_init(4, arguments);
	/* The script says the ID of its process: here, of its thread. */
	(void)snprintf(text, sizeof text,
		       "define('THREAD', %ld); define('STDOUT', fopen('php://stdout', 'w')); "
		       "$argv = ['%s', '%s', '%s']; include '%s';",
		       syscall(SYS_gettid), arguments[1], arguments[2], arguments[3], arguments[1]);
	zend_eval_string(text, NULL, "embedded");
	php_embed_shutdown();
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t thread;

	if (argc != 4)
		return 2;
	arguments = argv;
	pthread_create(&thread, NULL, run, NULL);
	pthread_join(thread, NULL);
	return 0;
}
