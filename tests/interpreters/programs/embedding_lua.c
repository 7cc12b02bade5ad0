/* SPDX-License-Identifier: MIT */
/*
 * embedding_lua SCRIPT SHAPE FOLDER: runs the script by Lua's library on two threads, each with a
 * state of its own: on the second without lua_pcall(). Its headers are no package that is needed
 * otherwise: what is called of it is declared here.
 */
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

struct lua_State;
struct lua_State *luaL_newstate(void);
void luaL_openlibs(struct lua_State *l);
int luaL_loadfilex(struct lua_State *l, const char *name, const char *mode);
int luaL_loadstring(struct lua_State *l, const char *text);
void lua_callk(struct lua_State *l, int n, int results, ptrdiff_t context, void *k);
int lua_pcallk(struct lua_State *l, int n, int results, int handler, ptrdiff_t context, void *k);
void lua_createtable(struct lua_State *l, int n, int size);
const char *lua_pushstring(struct lua_State *l, const char *text);
void lua_rawseti(struct lua_State *l, int at, long long i);
void lua_setglobal(struct lua_State *l, const char *name);
void lua_pushcclosure(struct lua_State *l, int (*fn)(struct lua_State *), int n);
void lua_pushinteger(struct lua_State *l, long long n);

static char **arguments;

/* Returns the ID of the thread, which the script says. */
static int thread_id(struct lua_State *l)
{
	lua_pushinteger(l, gettid());
	return 1;
}

static void *run(void *is_plain)
{
	struct lua_State *l = luaL_newstate();

	luaL_openlibs(l);
	lua_pushcclosure(l, thread_id, 0);
	lua_setglobal(l, "thread_id");
	lua_createtable(l, 0, 0);
	for (int i = 1; i < 4; i++) {
		lua_pushstring(l, arguments[i]);
		lua_rawseti(l, -2, i - 1);
	}
	lua_setglobal(l, "arg");
	if (luaL_loadfilex(l, arguments[1], NULL))
		return NULL;
	if (is_plain)
		lua_callk(l, 0, 0, 0, NULL);
	else
		lua_pcallk(l, 0, 0, 0, 0, NULL);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];

	if (argc != 4)
		return 2;
	arguments = argv;
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, run, i ? argv : NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
