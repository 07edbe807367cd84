/* An auditor (man 7 rtld-audit) that watches nothing. */
unsigned la_version(unsigned version);
unsigned la_version(unsigned version) { return version; }
