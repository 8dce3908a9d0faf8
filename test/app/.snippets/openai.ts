import OpenAI from "openai"

const client = new OpenAI({ baseURL: "http://127.0.0.1:34261/v1", apiKey: "svc-prod-3e4dd61b9571db205fb68f883c800222b1cb944b66cd522ebc88698e85fe33b7" })
const answer = await client.chat.completions.create({
  model: "auto",
  messages: [{ role: "user", content: "Hello" }]
})

console.log(answer.choices[0]!.message.content)