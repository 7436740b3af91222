/* Lists, texts and closures for the stand-in, which needs no C++ library: some compilers would build theirs first. */
#include <stdlib.h>
#include <string.h>

void *operator new(size_t size) { return malloc(size ? size : 1); }
inline void *operator new(size_t, void *place) { return place; }
void operator delete(void *memory) noexcept { free(memory); }
void operator delete(void *memory, size_t) noexcept { free(memory); }

template <typename T> class List {
 public:
  List() = default;
  List(const List &other) { *this = other; }
  ~List() {
    clear();
    free(items_);
  }
  List &operator=(const List &other) {
    if (this == &other) return *this;
    clear();
    for (const T &each : other) push(each);
    return *this;
  }
  void push(const T &item) {
    if (size_ == room_) {
      room_ = room_ ? 2 * room_ : 8;
      T *more = static_cast<T *>(malloc(room_ * sizeof(T)));
      for (size_t k = 0; k < size_; ++k) {
        new (more + k) T(items_[k]);
        items_[k].~T();
      }
      free(items_);
      items_ = more;
    }
    new (items_ + size_++) T(item);
  }
  void remove(size_t place) {
    for (size_t k = place; k + 1 < size_; ++k) items_[k] = items_[k + 1];
    items_[--size_].~T();
  }
  void clear() {
    while (size_) items_[--size_].~T();
  }
  /* The place of an item; the size if it is not there. */
  size_t find(const T &item) const {
    size_t place = 0;
    while (place < size_ && !(items_[place] == item)) ++place;
    return place;
  }
  bool has(const T &item) const { return find(item) < size_; }
  bool take(const T &item) {
    const size_t place = find(item);
    if (place == size_) return false;
    remove(place);
    return true;
  }
  size_t size() const { return size_; }
  bool empty() const { return !size_; }
  T &operator[](size_t place) { return items_[place]; }
  const T &operator[](size_t place) const { return items_[place]; }
  T *begin() { return items_; }
  T *end() { return items_ + size_; }
  const T *begin() const { return items_; }
  const T *end() const { return items_ + size_; }

 private:
  T *items_ = nullptr;
  size_t size_ = 0, room_ = 0;
};

/* A text that grows. */
class Text {
 public:
  Text(const char *text = "") { append(text); }
  void append(const char *text) {
    while (*text) characters_.push(*text++);
  }
  void clear() { characters_.clear(); }
  /* Valid until the text changes. */
  const char *zero_terminated() {
    characters_.push('\0');
    characters_.remove(characters_.size() - 1);
    return characters_.begin();
  }

 private:
  List<char> characters_;
};

/* A closure without arguments; copies share it. */
class Work {
 public:
  template <typename F> Work(const F &function) : closure_(new Closure<F>(function)) {}
  Work(const Work &other) : closure_(other.closure_) { ++closure_->owners; }
  ~Work() { release(); }
  Work &operator=(const Work &other) {
    ++other.closure_->owners;
    release();
    closure_ = other.closure_;
    return *this;
  }
  void operator()() const { closure_->run(closure_); }

 private:
  struct Shared {
    void (*run)(Shared *);
    void (*destroy)(Shared *);
    long owners = 1;
    Shared(void (*run)(Shared *), void (*destroy)(Shared *)) : run(run), destroy(destroy) {}
  };
  template <typename F> struct Closure : Shared {
    F function;
    explicit Closure(const F &given)
        : Shared([](Shared *self) { static_cast<Closure *>(self)->function(); },
                 [](Shared *self) { delete static_cast<Closure *>(self); }),
          function(given) {}
  };
  void release() {
    if (!--closure_->owners) closure_->destroy(closure_);
  }
  Shared *closure_;
};
