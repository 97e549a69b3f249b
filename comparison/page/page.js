// What is folded is printed too, and folded again afterwards.
let unfolded = [];
addEventListener("beforeprint", () => {
  unfolded = [...document.querySelectorAll("details:not([open])")];
  unfolded.forEach((details) => { details.open = true; });
});
addEventListener("afterprint", () => unfolded.forEach((details) => { details.open = false; }));
