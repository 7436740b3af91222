/* A digit in an image, and a sentence letter by letter, by the library of spec.toml:
   LIB=dist/lib/x86_64-unknown-linux-gnu
   gcc examples/models/main.c -o main -Idist/include -L$LIB -ltwo_models -Wl,-rpath,$LIB */
#include <stdio.h>
#include <string.h>
#include <two_models.h>

#define LENGTH 64
#define CACHE (2 * LENGTH * 16)

static int failed(int code) {
  if (code != TWO_MODELS_OK) fprintf(stderr, "two_models: %s\n", two_models_message(code));
  return code != TWO_MODELS_OK;
}

static int greatest(const float *scores, int count) {
  int best = 0;
  for (int k = 1; k < count; k++)
    if (scores[k] > scores[best]) best = k;
  return best;
}

int main(void) {
  static const char image[] = "#####" "....#" "...#." "..#.." ".#..." ".#..." ".#...";
  static const char letters[] = " ;abcdefghijklmnopqrstuvwxyz", start[] = "the quick";
  static float x[35], digit[10], next[28], caches[2][2][CACHE];
  two_models_handle *handle;
  if (failed(two_models_create(&handle, 0))) return 1;
  if (failed(two_models_digits_load(handle, NULL)) || failed(two_models_writer_load(handle, NULL))) return 1;
  for (int k = 0; k < 35; k++) x[k] = image[k] == '#';
  if (failed(two_models_digits(handle, x, digit))) return 1;
  printf("the image is a %d\n", greatest(digit, 10));
  char text[LENGTH + 1] = "";
  strcpy(text, start);
  /* Each call reads one cache and writes the other. */
  for (int64_t place = 0; place < 44; place++) {
    const int64_t letter = strchr(letters, text[place]) - letters;
    float(*old)[CACHE] = caches[place % 2], (*new)[CACHE] = caches[(place + 1) % 2];
    if (failed(two_models_writer(handle, &letter, &place, old[0], old[1], next, new[0], new[1]))) return 1;
    if (place + 1 >= (int64_t)strlen(start)) text[place + 1] = letters[greatest(next, 28)];
  }
  puts(text);
  two_models_destroy(handle);
  return 0;
}
