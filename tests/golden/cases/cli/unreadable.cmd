# status 1
dtmalloc run /nonexistent/load.wl
