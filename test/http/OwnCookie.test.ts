import { expect, it } from "vitest"
import { ownCookie } from "../../src/http/transport/OwnCookie.ts"

it.each([
  ["https://gate.example", "__Host-tollgate_consent", "Path=/; HttpOnly; Secure"],
  ["https://gate.example/", "__Host-tollgate_consent", "Path=/; HttpOnly; Secure"],
  ["https://example.com/gate", "tollgate_consent", "Path=/gate/oauth; HttpOnly; Secure"],
  ["http://127.0.0.1:8080", "tollgate_consent", "Path=/oauth; HttpOnly"]
])("a cookie of %s has the prefix where a browser takes it", (public_url, name, attributes) => {
  expect(ownCookie("tollgate_consent", "/oauth", public_url)).toEqual({ name, attributes })
})
