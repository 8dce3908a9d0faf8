// Sets a process's clock back by a number of days. Preloaded (`--import file:///…/shifted-clock.mjs?days=366`) into the issuer and the service when
// people sign in whose calls will lie in the past year.
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
