// Sets a process's clock back by a number of days. The issuer and the service preload it while people sign up for a database with a year of past
// calls (`--import file:///…/shifted-clock.mjs?days=366`).
const days = Number(new URL(import.meta.url).searchParams.get("days"))
const { now } = Date
const shifted = () => now() - days * 86_400_000

globalThis.Date = class extends Date {
  constructor(...values) {
    if (values.length === 0) super(shifted())
    else super(...values)
  }

  static now() {
    return shifted()
  }
}
