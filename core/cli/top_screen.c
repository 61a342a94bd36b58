// SPDX-License-Identifier: GPL-2.0-or-later
#include "core/cli/top.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include "core/base/util.h"
#include "core/cli/columns.h"

/* Included last: their macros include `lines` and `columns`. */
#include <curses.h>
#include <term.h>

#define TERMINAL     "/dev/tty"
#define STREAMS	     3
#define ESC_DELAY_MS 50 /* between an escape and its sequence, also over a slow line */

static struct {
	int streams[STREAMS]; /* original standard streams; -1: unchanged */
	FILE *in, *out;
	SCREEN *curses;
	bool opened;

	/* For a signal handler that ends the process. */
	int fd;
	struct termios settings;
	char restore[128];
} screen = { .streams = { -1, -1, -1 }, .fd = -1 };

/* Signals that end the process by default, and that neither curses nor the session handles. */
static const int fatal_signals[] = { SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,    SIGFPE,
				     SIGUSR1, SIGSEGV, SIGUSR2, SIGPIPE, SIGALRM,   SIGXCPU,
				     SIGSYS,  SIGPROF, SIGPOLL, SIGPWR,	 SIGVTALRM, SIGSTKFLT };

int screen__check(struct err *err)
{
	const char *term = getenv("TERM");
	int status;

	if (setupterm(NULL, STDOUT_FILENO, &status) == OK && tigetstr("cup") &&
	    tigetstr("cup") != (char *)-1)
		return 0;
	return err__set(err, -EINVAL,
			"cannot draw on a terminal of the type '%s'. Set TERM to the type of "
			"yours, or use --once",
			term ? term : "");
}

static void close_streams(void)
{
	for (int fd = 0; fd < STREAMS; fd++) {
		if (screen.streams[fd] < 0)
			continue;
		dup2(screen.streams[fd], fd);
		close_fd(&screen.streams[fd]);
	}
}

int screen__open_streams(struct err *err)
{
	int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
	int ret = nowhere < 0 ? -errno : 0;

	for (int fd = 0; !ret && fd < STREAMS; fd++) {
		if (!isatty(fd))
			continue;
		screen.streams[fd] = fcntl(fd, F_DUPFD_CLOEXEC, STREAMS);
		if (screen.streams[fd] < 0 || dup2(nowhere, fd) < 0)
			ret = -errno;
	}
	close_fd(&nowhere);
	if (ret)
		close_streams();
	return ret ? err__set(err, ret, "cannot redirect the standard streams: %s", strerror(-ret))
		   : 0;
}

static void on_fatal(int number)
{
	ssize_t written = write(screen.fd, screen.restore, strlen(screen.restore));

	(void)written;
	tcsetattr(screen.fd, TCSANOW, &screen.settings);
	signal(number, SIG_DFL);
	raise(number);
}

/* Handles only signals that would end the process now: an ignored signal stays ignored. */
static void watch_signals(void)
{
	struct sigaction action = { .sa_handler = on_fatal }, old;

	for (size_t i = 0; i < ARRAY_SIZE(fatal_signals); i++)
		if (!sigaction(fatal_signals[i], NULL, &old) && old.sa_handler == SIG_DFL)
			sigaction(fatal_signals[i], &action, NULL);
}

static void unwatch_signals(void)
{
	struct sigaction old;

	for (size_t i = 0; i < ARRAY_SIZE(fatal_signals); i++)
		if (!sigaction(fatal_signals[i], NULL, &old) && old.sa_handler == on_fatal)
			signal(fatal_signals[i], SIG_DFL);
}

static void note_restore(void)
{
	static const char *const names[] = { "rmkx", "sgr0", "cnorm", "rmcup" };

	*screen.restore = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *text = tigetstr(names[i]);

		if (text && text != (char *)-1 &&
		    strlen(screen.restore) + strlen(text) < sizeof(screen.restore))
			strcat(screen.restore, text);
	}
}

int screen__open(struct err *err)
{
	int fd = open(TERMINAL, O_RDWR | O_CLOEXEC | O_NOCTTY);

	setlocale(LC_CTYPE, "");
	screen.in = fd < 0 ? NULL : fdopen(fd, "r");
	screen.fd = open(TERMINAL, O_RDWR | O_CLOEXEC | O_NOCTTY);
	screen.out = screen.fd < 0 ? NULL : fdopen(screen.fd, "w");
	if (!screen.in || !screen.out || tcgetattr(screen.fd, &screen.settings)) {
		screen__close();
		return err__set(err, -ENOTTY, "cannot open %s: there is no terminal. Use --once",
				TERMINAL);
	}
	screen.curses = newterm(NULL, screen.out, screen.in);
	if (!screen.curses) {
		screen__close();
		return err__set(err, -EINVAL, "cannot draw on this terminal. Use --once");
	}
	screen.opened = true;
	note_restore();
	watch_signals();
	set_escdelay(ESC_DELAY_MS);
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	curs_set(0);
	return 0;
}

void screen__close(void)
{
	if (screen.opened) {
		endwin();
		unwatch_signals();
		delscreen(screen.curses);
	}
	screen.opened = false;
	if (screen.in)
		fclose(screen.in);
	if (screen.out)
		fclose(screen.out);
	screen.in = screen.out = NULL;
	close_streams();
}

static void put_line(int line, const char *text, attr_t attributes)
{
	char cut[TOP_TEXT_BYTES];
	int taken = columns__cut(text, COLS, cut, sizeof(cut));

	attrset(attributes);
	mvaddstr(line, 0, cut);
	if (attributes & A_REVERSE)
		for (; taken < COLS; taken++)
			addch(' ');
	attrset(A_NORMAL);
}

static void draw_help(void)
{
	const char *text;

	for (int line = 0; line < LINES && (text = top__help(line)); line++)
		put_line(line, text, line ? A_NORMAL : A_BOLD);
}

static void draw_table(struct top *top)
{
	int room = LINES - TOP_ROWS_FROM - TOP_MESSAGE_LINES;
	size_t n = top->rows.n;
	char text[TOP_TEXT_BYTES];

	top->n_visible = room > 0 ? room : 0;
	if (top->rows_max)
		n = min_of(n, top->rows_max);
	top__scroll(top);
	for (int line = 0; line < TOP_HEADER_LINES && line < LINES; line++) {
		top__header(top, line, text);
		put_line(line, text, line ? A_NORMAL : A_BOLD);
	}
	if (room > 0 && n)
		top__titles(top, COLS, text);
	else
		top__empty(top, text);
	if (room > 0)
		put_line(TOP_TITLES_LINE, text, n ? A_REVERSE : A_NORMAL);
	for (size_t i = 0; i < top->n_visible && top->first + i < n; i++) {
		top__row(top, &top->rows.list[top->first + i], COLS, text);
		put_line(TOP_ROWS_FROM + i, text,
			 top->first + i == top->cursor ? A_BOLD | A_UNDERLINE : A_NORMAL);
	}
	top__message(top, text);
	put_line(LINES - 1, text, A_NORMAL);
}

void screen__draw(struct top *top)
{
	erase();
	if (top->mode == TOP_HELP)
		draw_help();
	else
		draw_table(top);
	refresh();
	top->changed = false;
}

static int key_of(int key)
{
	switch (key) {
	case KEY_UP:
		return TOP_KEY_UP;
	case KEY_DOWN:
		return TOP_KEY_DOWN;
	case KEY_PPAGE:
		return TOP_KEY_PAGE_UP;
	case KEY_NPAGE:
		return TOP_KEY_PAGE_DOWN;
	case KEY_HOME:
		return TOP_KEY_HOME;
	case KEY_END:
		return TOP_KEY_END;
	case KEY_RESIZE:
		return TOP_KEY_RESIZE;
	case KEY_BACKSPACE:
	case 0x7f:
	case '\b':
		return TOP_KEY_BACKSPACE;
	case KEY_ENTER:
	case '\n':
	case '\r':
		return TOP_KEY_ENTER;
	case 0x1b:
		return TOP_KEY_ESCAPE;
	case '\f':
		clearok(curscr, TRUE); /* repaint over other programs' output */
		return TOP_KEY_RESIZE;
	default:
		return key < 0x100 ? key : -1;
	}
}

int screen__key(int timeout_ms, bool *ret_hung_up)
{
	struct pollfd polled = { .fd = fileno(screen.in), .events = POLLIN };
	int n = poll(&polled, 1, timeout_ms);

	*ret_hung_up = n > 0 && polled.revents & (POLLHUP | POLLERR | POLLNVAL);
	if (*ret_hung_up)
		return -1;
	timeout(0); /* also without input: a signal may have resized the terminal */
	return key_of(getch());
}
