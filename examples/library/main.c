/* A program that uses the library of spec.toml:
   LIB=dist/lib/x86_64-unknown-linux-gnu
   gcc examples/library/main.c -o main -Idist/include -L$LIB -lexample -Wl,-rpath,$LIB -lm */
#include <example.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int failed(int code) {
  if (code != EXAMPLE_OK) fprintf(stderr, "example: %s\n", example_message(code));
  return code != EXAMPLE_OK;
}

int main(void) {
  const int64_t rows = 100, columns = 512;
  example_handle *handle;
  if (failed(example_create(&handle, 2))) return 1;
  float *x = aligned_alloc(64, rows * columns * sizeof *x), *y = aligned_alloc(64, rows * columns * sizeof *y);
  if (x == NULL || y == NULL) return 1;
  for (int64_t k = 0; k < rows * columns; k++) x[k] = (float)(k % 97) / 10;
  /* 100 rows are not in the specification, but `rows = true` is. */
  if (failed(example_softmax_f32(handle, rows, columns, x, y))) return 1;
  double worst = 0;
  for (int64_t r = 0; r < rows; r++) {
    double sum = 0;
    for (int64_t c = 0; c < columns; c++) sum += y[r * columns + c];
    worst = fmax(worst, fabs(sum - 1));
  }
  printf("example %s, level %s: sums of rows differ from 1 by at most %.1e\n", example_version(), example_level(handle), worst);
  free(x);
  free(y);
  example_destroy(handle);
  return worst < 1e-4 ? 0 : 1;
}
