"""Write requests.csv: 30 intents in six groups, 30 made-up sentences each.

The intents of a group share words, so that they are easily taken for each other. The file
comes out the same everywhere.

    python examples/data/make_requests.py
"""

import csv
import random
from pathlib import Path

PER_INTENT = 30

OPENINGS = ["", "", "hello, ", "please help, ", "sorry, ", "hi there, ", "excuse me, "]
ENDINGS = ["", "", " please", " thanks", " if you can", " thank you"]

# What stands for {name} in a sentence of any intent.
FILLERS = {
    "card": ["card", "credit card", "debit card", "bank card", "visa card"],
    "shop": ["the shop", "the supermarket", "the petrol station", "a restaurant", "the chemist"],
    "person": ["my sister", "my landlord", "a friend", "my son", "my boss", "a shop"],
    "sum": ["50 pounds", "200 pounds", "300 euros", "500 euros", "some money"],
    "city": ["rome", "paris", "lisbon", "oslo", "vienna", "madrid", "dublin", "prague"],
    "day": ["tomorrow", "on friday", "on monday", "next week", "this weekend", "tonight"],
    "song": ["jazz", "a love song", "the beatles", "piano music", "some rock", "this singer"],
    "room": ["kitchen", "living room", "bedroom", "office", "bathroom"],
    "dish": ["lasagne", "onion soup", "pancakes", "a curry", "fish pie", "an apple cake"],
    "food": ["rice", "butter", "potatoes", "milk", "chicken", "flour", "spinach", "cream"],
}

GROUPS = {
    "cards": {
        "card_lost": [
            "i cannot find my {card}", "my {card} is gone", "i lost my {card} at {shop}",
            "i left my {card} at {shop}", "where did my {card} go", "i think my {card} is missing",
        ],
        "card_stolen": [
            "somebody took my {card}", "my {card} was taken at {shop}", "a thief has my {card}",
            "my bag with my {card} is gone", "somebody else is using my {card}",
            "i think my {card} was stolen at {shop}",
        ],
        "card_blocked": [
            "my {card} is blocked", "unblock my {card}",
            "i typed a wrong pin and my {card} stopped", "my {card} is locked after {shop}",
            "how do i get my {card} working", "why did you block my {card} at {shop}",
        ],
        "card_declined": [
            "my {card} was refused at {shop}", "{shop} did not take my {card}",
            "my {card} is not working at {shop}", "why was my {card} declined",
            "i could not pay with my {card}", "my {card} did not go through at {shop}",
        ],
        "card_new": [
            "i want a new {card}", "send me another {card}", "how do i get a {card}",
            "where is my new {card}", "order a second {card}", "my {card} is worn, send a new one",
        ],
    },
    "transfers": {
        "transfer_send": [
            "send {sum} to {person}", "i want to pay {person} {sum}", "transfer {sum} to {person}",
            "move {sum} to the account of {person}", "how do i send {sum} to {person}",
            "pay {sum} to {person} {day}",
        ],
        "transfer_cancel": [
            "stop the transfer to {person}", "i sent {sum} to {person} by mistake",
            "take back {sum} i sent to {person}", "do not send {sum} to {person}",
            "cancel my payment to {person}", "can i undo a transfer of {sum}",
        ],
        "transfer_pending": [
            "{person} has not got {sum} yet", "when does {person} get {sum}",
            "where is the {sum} i sent to {person}", "my transfer to {person} is not there yet",
            "how long does a payment to {person} take", "is the transfer of {sum} still on its way",
        ],
        "transfer_fee": [
            "what does it cost to send {sum}", "is there a fee to pay {person}",
            "why did sending {sum} cost extra", "i was charged for a transfer to {person}",
            "how much do you take for a payment of {sum}", "do i pay a fee for a transfer of {sum}",
        ],
        "transfer_received": [
            "has {person} paid me", "did {sum} from {person} come in",
            "i am waiting for {sum} from {person}", "when do i get {sum} from {person}",
            "has a transfer from {person} arrived", "is there a payment of {sum} in my account",
        ],
    },
    "travel": {
        "flight_book": [
            "book a flight to {city} {day}", "i need to fly to {city} {day}",
            "get me a ticket to {city}", "find a plane to {city} {day}",
            "is there a flight to {city}", "reserve a seat to {city} {day}",
        ],
        "flight_status": [
            "is my flight to {city} late", "when does my plane to {city} leave {day}",
            "is the flight to {city} on time", "when do we land in {city}",
            "has the plane from {city} arrived", "is there a delay to {city} {day}",
        ],
        "hotel_book": [
            "book a hotel in {city} {day}", "find me a room in {city}",
            "i need a bed in {city} {day}", "reserve a room in {city} {day}",
            "get me a hotel near the station in {city}", "is there a room free in {city}",
        ],
        "train_times": [
            "when does the train to {city} leave", "is there a train to {city} {day}",
            "what time is the last train to {city}", "find a train from {city} {day}",
            "how long does the train to {city} take", "which platform is the train to {city}",
        ],
        "trip_cancel": [
            "cancel my trip to {city}", "i cannot go to {city} {day}", "cancel my room in {city}",
            "i do not need the ticket to {city}", "give back my ticket to {city} {day}",
            "drop the flight to {city} {day}",
        ],
    },
    "music": {
        "music_play": [
            "play {song}", "put on {song} in the {room}", "i want to hear {song}", "start {song}",
            "play {song} in the {room}", "let me hear {song} in the {room}",
        ],
        "music_stop": [
            "stop {song}", "turn off {song} in the {room}", "no more {song}",
            "stop playing {song} in the {room}", "pause {song}", "switch the {room} music off",
        ],
        "music_volume": [
            "play {song} louder", "turn {song} up", "turn down {song} in the {room}",
            "{song} is too loud in the {room}", "make {song} quieter", "turn up the {room} music",
        ],
        "music_name": [
            "who sings {song}", "what is playing in the {room}",
            "what is this called, is it {song}", "which song is on in the {room}", "is this {song}",
            "tell me the name of {song}",
        ],
        "music_save": [
            "add {song} to my list", "save {song}", "i like {song}, keep it",
            "put {song} on my list for the {room}", "remember {song}", "make a list with {song}",
        ],
    },
    "weather": {
        "weather_rain": [
            "will it rain in {city} {day}", "do i need an umbrella in {city}",
            "is it wet in {city} {day}", "is rain coming to {city}",
            "how likely is rain in {city} {day}", "does it stay dry in {city} {day}",
        ],
        "weather_temperature": [
            "how warm is it in {city}", "how cold will it be in {city} {day}",
            "how many degrees in {city} {day}", "do i need a coat in {city}",
            "is it hot in {city} {day}", "will it freeze in {city} {day}",
        ],
        "weather_wind": [
            "is it windy in {city} {day}", "how strong is the wind in {city}",
            "is a storm coming to {city}", "will it storm in {city} {day}",
            "how fast is the wind in {city}", "can i sail near {city} {day}",
        ],
        "weather_sun": [
            "will the sun shine in {city} {day}", "is it sunny in {city}",
            "how cloudy is {city} {day}", "do i need sunglasses in {city}",
            "is the sky clear in {city} {day}", "will it clear up in {city} {day}",
        ],
        "weather_snow": [
            "will it snow in {city} {day}", "is there snow in {city}",
            "how deep is the snow in {city}", "do i need boots in {city} {day}",
            "is snow coming to {city} {day}", "can we ski near {city}",
        ],
    },
    "kitchen": {
        "recipe_find": [
            "how do i make {dish}", "find a recipe for {dish}", "what can i cook with {food}",
            "i want to cook {dish} with {food}", "show me {dish}", "what do i need for {dish}",
        ],
        "recipe_time": [
            "how long does {dish} take", "how long do i cook {food}", "when is {dish} ready",
            "how many minutes for {food}", "how long do i boil {food} for {dish}",
            "how much time does {dish} need",
        ],
        "recipe_swap": [
            "what can i use for {food} in {dish}", "i have no {food} for {dish}",
            "can i make {dish} without {food}", "what do i take if there is no {food}",
            "swap {food} in {dish}", "is there something else than {food} for {dish}",
        ],
        "food_keep": [
            "how long can i keep {food}", "does {food} need the fridge", "is {food} still good",
            "how do i keep {dish} fresh", "can i freeze {dish}", "when does {food} go off",
        ],
        "shopping_add": [
            "put {food} on my list", "i need to buy {food}", "add {food} for {dish}",
            "buy what i need for {dish}", "we have no {food}, get more",
            "remember {food} for {dish}",
        ],
    },
}  # fmt: skip


def draw_sentence(template: str, rng: random.Random) -> str:
    words = {name: rng.choice(choices) for name, choices in FILLERS.items()}
    return rng.choice(OPENINGS) + template.format(**words) + rng.choice(ENDINGS)


def make_rows() -> dict[str, str]:
    """Return sentence → intent, with every template of an intent used equally often."""
    rng = random.Random(0)  # noqa: S311
    rows: dict[str, str] = {}
    for intents in GROUPS.values():
        for intent, templates in intents.items():
            for index in range(PER_INTENT):
                sentence = draw_sentence(templates[index % len(templates)], rng)
                while sentence in rows:
                    sentence = draw_sentence(templates[index % len(templates)], rng)
                rows[sentence] = intent
    return rows


def write_rows(path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("text", "intent"))
        writer.writerows(make_rows().items())


if __name__ == "__main__":
    write_rows(Path(__file__).with_name("requests.csv"))
