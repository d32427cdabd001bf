/* Looks a name up through the C library it is linked with: getaddrinfo's code, its time in seconds, and the addresses. */
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

int main(int count, char **words) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_family = count > 2 ? AF_INET : AF_UNSPEC};
  struct addrinfo *found = NULL;
  double start = now();
  int code = getaddrinfo(words[1], NULL, &hints, &found);
  printf("%s\n%.3f\n", code == 0 ? "found" : gai_strerror(code), now() - start);
  for (struct addrinfo *one = found; one != NULL; one = one->ai_next) {
    char text[INET6_ADDRSTRLEN];
    const void *address = one->ai_family == AF_INET ? (void *)&((struct sockaddr_in *)one->ai_addr)->sin_addr
                                                    : (void *)&((struct sockaddr_in6 *)one->ai_addr)->sin6_addr;
    puts(inet_ntop(one->ai_family, address, text, sizeof text));
  }
  return 0;
}
